// Sends webhooks with the vendors' own libraries: node senders.mjs NODE_MODULES. Standard input is a JSON array of calls, standard
// output one of answers {status, text}. With "verify" nothing is sent: the library judges headers that others made.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

const modules = process.argv[2];
const octokit = await import(`${modules}/@octokit/webhooks-methods/dist-node/index.js`);
const { Webhook } = (await import(`${modules}/standardwebhooks/dist/index.js`)).default;
const { Webhook: Svix } = (await import(`${modules}/svix/dist/index.js`)).default;
const Stripe = (await import(`${modules}/stripe/esm/stripe.esm.node.js`)).default;
const { verifySlackRequest } = (await import(`${modules}/@slack/bolt/dist/receivers/verify-request.js`)).default;
const { LinearWebhookClient } = await import(`${modules}/@linear/sdk/dist/webhooks/index.mjs`);

const hmac = (secret, text, encoding) => createHmac("sha256", secret).update(text).digest(encoding);

// Each function returns whether the vendor's library accepts a request; it may throw instead.
const judges = {
  github: (secret, h, body) => octokit.verify(secret, body, h["x-hub-signature-256"]),
  standard: (secret, h, body) => !!new Webhook(secret).verify(body, h),
  svix: (secret, h, body) => !!new Svix(secret).verify(body, h),
  stripe: (secret, h, body) => !!new Stripe("sk_test_x").webhooks.constructEvent(body, h["stripe-signature"], secret),
  slack: (secret, h, body) => {
    verifySlackRequest({ signingSecret: secret, headers: h, body });
    return true;
  },
  linear: (secret, h, body) => new LinearWebhookClient(secret).verify(Buffer.from(body), h["linear-signature"], JSON.parse(body).webhookTimestamp),
};

async function headers(c) {
  const at = new Date(Date.now() + (c.shift ?? 0) * 1000);
  const stamp = Math.floor(at.getTime() / 1000);
  const list = (sign, separator) => c.secrets.map(sign).join(separator);
  switch (c.family) {
    case "bearer":
      return { Authorization: "Bearer " + c.secrets[0], "Idempotency-Key": c.id };
    case "github":
      return {
        "X-GitHub-Event": c.event ?? "x", "X-GitHub-Delivery": c.id,
        "X-Hub-Signature-256": c.secrets[0] === "" // which the library refuses
          ? "sha256=" + hmac("", c.body, "hex") : await octokit.sign(c.secrets[0], c.body),
      };
    case "standard": {
      const sign = (secret) => secret === "" ? "v1," + hmac("", `${c.id}.${stamp}.${c.body}`, "base64") : new Webhook(secret).sign(c.id, at, c.body);
      return { "webhook-id": c.id, "webhook-timestamp": String(stamp), "webhook-signature": list(sign, " ") };
    }
    case "svix":
      return { "svix-id": c.id, "svix-timestamp": String(stamp), "svix-signature": list((secret) => new Svix(secret).sign(c.id, at, c.body), " ") };
    case "stripe": {
      const sign = (secret) => Stripe.webhooks.generateTestHeaderString({ payload: c.body, secret, timestamp: stamp });
      return { "Stripe-Signature": `t=${stamp},` + list((secret) => sign(secret).split(",")[1], ",") };
    }
    case "slack": // the library has no function that signs; below it judges what is sent
      return { "X-Slack-Request-Timestamp": String(stamp), "X-Slack-Signature": "v0=" + hmac(c.secrets[0], `v0:${stamp}:${c.body}`, "hex") };
    case "linear":
      c.body = JSON.stringify({ ...JSON.parse(c.body), webhookTimestamp: at.getTime() });
      return { "Linear-Delivery": c.id, "Linear-Signature": hmac(c.secrets[0], c.body, "hex") };
    case "gitlab":
      return { "X-Gitlab-Token": c.secrets[0], "X-Gitlab-Event": "Push Hook", "Idempotency-Key": c.id };
    case "telegram":
      return { "X-Telegram-Bot-Api-Secret-Token": c.secrets[0] };
    case "shopify":
      return { "X-Shopify-Webhook-Id": c.id, "X-Shopify-Hmac-Sha256": hmac(c.secrets[0], c.body, "base64") };
    case "sentry":
      return { "Request-ID": c.id, "Sentry-Hook-Timestamp": String(stamp), "Sentry-Hook-Signature": hmac(c.secrets[0], c.body, "hex") };
    case "pagerduty":
      return { "X-PagerDuty-Signature": list((secret) => "v1=" + hmac(secret, c.body, "hex"), ",") };
  }
}

const lower = (h) => Object.fromEntries(Object.entries(h).map(([name, value]) => [name.toLowerCase(), value]));

async function judge(c, h) {
  try {
    return { status: (await judges[c.family](c.secrets[0], lower(h), c.body)) ? 200 : 401, text: "" };
  } catch (e) {
    return { status: 401, text: String(e) };
  }
}

async function call(c) {
  if (c.verify) return judge(c, c.verify);
  const h = await headers(c);
  if (judges[c.family] && !c.shift && c.secrets[0] !== "" && c.secrets.length === 1) {
    const own = await judge(c, h);
    if (own.status !== 200) throw new Error(`${c.family}: the vendor's library refuses what is sent: ${own.text}`);
  }
  for (const [name, value] of Object.entries(h)) {
    if (c.truncate && /signature|hmac|token|authorization/i.test(name)) h[name] = value.slice(0, -c.truncate);
  }
  const answer = await fetch(c.url, { method: "POST", body: c.sent ?? c.body, headers: { "Content-Type": "application/json", ...h } });
  return { status: answer.status, text: await answer.text() };
}

const answers = [];
for (const c of JSON.parse(readFileSync(0, "utf8"))) answers.push(await call(c));
process.stdout.write(JSON.stringify(answers));
