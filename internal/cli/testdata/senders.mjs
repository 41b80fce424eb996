// Sends webhooks with the vendors' own libraries: node senders.mjs NODE_MODULES. Standard input is a JSON array of calls, standard
// output one of answers {status, text}. With "verify" nothing is sent: the library judges headers that others made.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

const modules = process.argv[2];
const octokit = await import(`${modules}/@octokit/webhooks-methods/dist-node/index.js`);
const { Webhook } = (await import(`${modules}/standardwebhooks/dist/index.js`)).default;

async function headers(c) {
  const at = new Date(Date.now() + (c.shift ?? 0) * 1000);
  switch (c.family) {
    case "github":
      return {
        "X-GitHub-Event": c.event ?? "x", "X-GitHub-Delivery": c.id,
        "X-Hub-Signature-256": c.secrets[0] === "" // which the library refuses
          ? "sha256=" + createHmac("sha256", "").update(c.body).digest("hex") : await octokit.sign(c.secrets[0], c.body),
      };
    case "standard": {
      const stamp = Math.floor(at.getTime() / 1000);
      const sign = (secret) => secret === ""
        ? "v1," + createHmac("sha256", "").update(`${c.id}.${stamp}.${c.body}`).digest("base64") : new Webhook(secret).sign(c.id, at, c.body);
      return { "webhook-id": c.id, "webhook-timestamp": String(stamp), "webhook-signature": c.secrets.map(sign).join(" ") };
    }
  }
}

async function call(c) {
  if (c.verify) {
    const h = c.verify;
    try {
      const valid = c.family === "github"
        ? await octokit.verify(c.secrets[0], c.body, h["X-Hub-Signature-256"]) : !!new Webhook(c.secrets[0]).verify(c.body, h);
      return { status: valid ? 200 : 401, text: "" };
    } catch (e) {
      return { status: 401, text: String(e) };
    }
  }
  const h = await headers(c);
  for (const [name, value] of Object.entries(h)) {
    if (c.truncate && name.toLowerCase().includes("signature")) h[name] = value.slice(0, -c.truncate);
  }
  const answer = await fetch(c.url, { method: "POST", body: c.sent ?? c.body, headers: { "Content-Type": "application/json", ...h } });
  return { status: answer.status, text: await answer.text() };
}

const answers = [];
for (const c of JSON.parse(readFileSync(0, "utf8"))) answers.push(await call(c));
process.stdout.write(JSON.stringify(answers));
