#!/usr/bin/env python3
"""A door of ollim for mail: reads a mailbox by IMAP and answers by SMTP. ollim-door(5) has the protocol, README.md the setup.

Only the owner is heard, in mail that the own server calls authentic. Nothing is kept on disk: the server marks what ollim has taken.
"""
import argparse
import datetime
import email
import email.policy
import email.utils
import hashlib
import html.parser
import imaplib
import json
import mimetypes
import os
import queue
import re
import select
import smtplib
import ssl
import sys
import threading
import time
import traceback

TAKEN = "OllimTaken"  # the keyword of a message that ollim has kept
CATCH_UP = 7  # days in which a message is delivered
REMEMBER = 90  # days in which a thread is continued
MOST_THREADS = 500  # messages whose headers are read at the start
MOST_MAIL = 40 << 20  # bytes of a message
MOST_FILE = 20 << 20
MOST_TEXT = 50_000  # UTF-16 units of a text
PATIENCE = 60  # seconds for an answer of a server
IDLE = 9 * 60  # seconds after which a router may forget a connection on which nothing is said
DIRECT = "mail"  # the channel for what begins a thread

cli = argparse.ArgumentParser(description="a door of ollim for mail; the environment variable PASSWORD has the password")
cli.add_argument("--address", required=True, help="of the agent's mailbox")
cli.add_argument("--imap", required=True, metavar="HOST[:PORT]", help="the port is 993, TLS from the beginning, unless it is given")
cli.add_argument("--smtp", required=True, metavar="HOST[:PORT]", help="the port is 465, TLS from the beginning; with 587 TLS is begun by STARTTLS")
cli.add_argument("--user", help="the name to log in with; else the address")
cli.add_argument("--owner", required=True, action="append", type=str.lower, help="an address that is heard; may be given again")
cli.add_argument("--trust", required=True, metavar="NAME", help="the name with which the own server begins Authentication-Results")
args = cli.parse_args()

FAULTS = (ValueError, LookupError, AttributeError, TypeError)  # of the package email with odd messages

output = threading.Lock()


def write(**line):
    with output:
        print(json.dumps(line), flush=True)


def warn(*words):
    print(*words, file=sys.stderr, flush=True)


def server_of(text, port):
    host, _, given = text.partition(":")
    return host, int(given or port)


def to_id(message_id):
    return hashlib.sha256(message_id.strip().encode()).hexdigest()[:24]


# --- What a message says ---------------------------------------------------------------------------------------------------------------


def without_comments(text):
    """Returns a header's value without comments and quoted strings, which a sender may have chosen."""
    out, depth, quoted, escaped = [], 0, False, False
    for c in text:
        if escaped:
            escaped = False
        elif c == "\\" and (depth or quoted):
            escaped = True
        elif quoted:
            quoted = c != '"'
        elif c == '"' and not depth:
            quoted = True
        elif c == "(":
            depth += 1
        elif c == ")" and depth:
            depth -= 1
        elif not depth:
            out.append(c)
    return "".join(out)


def is_authentic(message, domain):
    """Reports whether the own server has authenticated the domain of From. A header below its own one may be the sender's."""
    for field in message.get_all("Authentication-Results", []):
        server, *results = without_comments(str(field)).lower().split(";")
        if server.split()[:1] != [args.trust.lower()]:
            continue
        for result in results:
            method, *properties = result.split() or [""]
            found = dict(p.partition("=")[::2] for p in properties)
            signer = found.get("header.d") or found.get("header.i", "").rpartition("@")[2]
            if method == "dmarc=pass" and found.get("header.from") == domain or method == "dkim=pass" and signer == domain:
                return True
        return False
    return False


def sender_of(message):
    """Returns the owner's address if a message is one to answer, else None."""
    try:
        return judged(message)
    except FAULTS:
        return None


def judged(message):
    fields = message.get_all("From", [])
    if len(fields) != 1 or len(fields[0].addresses) != 1:
        return None
    address = fields[0].addresses[0].addr_spec.lower()
    if address not in args.owner or address == args.address.lower() or is_automatic(message):
        return None
    return address if is_authentic(message, address.rpartition("@")[2]) else None


def is_automatic(message):
    """Reports whether a program has sent a message: RFC 3834 and what was used before it."""
    return (
        without_comments(message.get("Auto-Submitted", "no")).split(";")[0].strip().lower() != "no"
        or message.get("Precedence", "").strip().lower() in ("bulk", "junk", "list", "auto_reply")
        or message.get("Return-Path", "").strip() == "<>"
        or any(message.get(name) for name in ("List-Id", "X-Autoreply", "X-Autorespond"))
        or message.get_content_type() == "multipart/report"
    )


class Plain(html.parser.HTMLParser):
    """Collects the text of HTML."""

    def __init__(self):
        super().__init__()
        self.parts, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("style", "script", "title")
        if tag in ("br", "p", "div", "li", "tr", "h1", "h2", "h3", "blockquote"):
            self.parts.append("\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "script", "title") and self.hidden > 0

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def text_of(message):
    """Returns what a message says, without the quotation below it and the signature, and the quotation."""
    part = message.get_body(("plain", "html"))
    if part is None or part.get_filename():
        return "", ""
    try:
        text = part.get_content()
    except (LookupError, ValueError):  # an unknown charset
        text = part.get_payload(decode=True).decode(errors="replace")
    if part.get_content_subtype() == "html":
        parser = Plain()
        parser.feed(text)
        parser.close()
        text = "".join(parser.parts)
    text = text.replace("\r\n", "\n")
    text, quoted = without_quotation(re.split(r"^-- \n", text, maxsplit=1, flags=re.M)[0])
    return text.strip(), quoted.strip()


def without_quotation(text):
    """Splits a text at the quotation at its end, which begins with a line such as: On Friday Ann wrote:"""
    outlook = re.search(r"^-+ ?Original Message ?-+\n", text, re.M)
    if outlook:
        return text[: outlook.start()], text[outlook.end() :]
    lines = text.rstrip().split("\n")
    end = len(lines)
    while end and (lines[end - 1].startswith(">") or not lines[end - 1].strip()):
        end -= 1
    if end in (0, len(lines)) or not lines[end - 1].rstrip().endswith(":"):
        return text, ""
    begin = end - 1
    if begin and len(lines[begin]) < 30:  # the rest of a longer line
        begin -= 1
    return "\n".join(lines[:begin]), "\n".join(re.sub("^> ?", "", line) for line in lines[end:])


def files_of(message):
    """Returns the parts of a message that are files, with their names."""
    body = message.get_body(("plain", "html"))
    for part in message.walk():
        if part.is_multipart() or part is body and not part.get_filename():
            continue
        if not part.get_filename() and (part.get_content_maintype() == "text" or not part.get_payload()):
            continue  # the other form of the text
        yield part.get_filename() or "file" + (mimetypes.guess_extension(part.get_content_type()) or ""), part


def is_reply(message):
    return bool(message.get("In-Reply-To") or message.get("References"))


# --- Threads -----------------------------------------------------------------------------------------------------------------------------

OWN = re.compile(r"<ollim\.([0-9a-z]+)\.[0-9a-f]+@[^<>\s]+>")


class Threads:
    """Knows the latest messages: what a reply to one needs. A thread is a channel. An own Message-ID names its channel."""

    def __init__(self):
        self.lock, self.known, self.latest = threading.Lock(), {}, {}

    def note(self, message_id, references, subject, owner, channel):
        with self.lock:
            self.known[to_id(message_id)] = self.latest[channel] = (message_id, references, subject, owner)

    def find(self, reply_to, channel):
        with self.lock:
            return self.known.get(reply_to) or self.latest.get(channel)

    def add(self, message, owner):
        """Notes a message of the owner and returns its id and its channel."""
        message_id = message.get("Message-ID", "").strip() or "<none." + hashlib.sha256(bytes(message)).hexdigest() + ">"
        references = re.findall(r"<[^<>\s]+>", message.get("References", "") or message.get("In-Reply-To", ""))
        channel = to_id(references[0] if references else message_id)
        for own in map(OWN.fullmatch, reversed(references)):
            if own:  # in a thread that ollim has begun, the first message is the channel
                channel = own[1] if own[1] != DIRECT else to_id(own[0])
                break
        self.note(message_id, references, message.get("Subject", ""), owner, channel)
        return to_id(message_id), channel


threads = Threads()

# --- IMAP, in one thread -------------------------------------------------------------------------------------------------------------------


class Mailbox:
    """The agent's mailbox. All of its methods but ask run in the thread of serve."""

    def __init__(self):
        self.asked, (self.wake, self.waker) = queue.Queue(), os.pipe()
        self.uids, self.seen, self.validity, self.greeted = {}, set(), None, False

    def ask(self, what):
        """Lets the thread of serve do something with the connection."""
        self.asked.put(what)
        os.write(self.waker, b".")

    def serve(self):
        pause = 1
        while True:
            try:
                self.connect()
                pause = 1
                while True:
                    self.scan()
                    if not self.grown():
                        self.wait()
                    while not self.asked.empty():
                        self.asked.get()()
            except (OSError, imaplib.IMAP4.error) as e:
                warn("IMAP:", e)
            except BaseException:  # a thread that ends would leave a door that hears nothing
                traceback.print_exc()
                os._exit(1)
            time.sleep(pause)
            pause = min(2 * pause, 60)

    def connect(self):
        host, port = server_of(args.imap, 993)
        self.imap = imaplib.IMAP4_SSL(host, port, ssl_context=ssl.create_default_context(), timeout=PATIENCE)
        try:
            self.imap.login(args.user or args.address, os.environ.get("PASSWORD", ""))
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as e:
            warn("IMAP: the server refuses the name or the password; run: ollim secret set door.mail.PASSWORD:", e)
            os._exit(78)
        self.imap.select("INBOX")
        validity = self.imap.response("UIDVALIDITY")[1]
        if validity != self.validity:  # the UIDs are new ones
            self.validity, self.uids, self.seen = validity, {}, set()
        flags = b" ".join(f for f in self.imap.response("PERMANENTFLAGS")[1] or [] if f)
        self.mark, self.unmarked = (TAKEN, "UNKEYWORD " + TAKEN) if rb"\*" in flags else (r"\Flagged", "UNFLAGGED")
        if not self.greeted:
            self.read_threads()
            write(type="hello", version=1, able={"text": MOST_TEXT, "file": MOST_FILE}, owners=args.owner, direct=DIRECT)
            self.greeted = True

    def search(self, *criteria):
        return self.imap.uid("SEARCH", *criteria)[1][0].split()

    def fetch_all(self, uids, what):
        for part in self.imap.uid("FETCH", b",".join(uids), what)[1]:
            if isinstance(part, tuple):
                yield part[0], email.message_from_bytes(part[1], policy=email.policy.default)

    def fetch(self, uid, what):
        return next(self.fetch_all([uid], what), (b"", None))  # without one if it was deleted meanwhile

    def read_threads(self):
        for owner in args.owner:
            uids = self.search("FROM", '"' + owner + '"', "SINCE", since(REMEMBER))[-MOST_THREADS:]
            for _, headers in self.fetch_all(uids, "(BODY.PEEK[HEADER])") if uids else ():
                if sender_of(headers):
                    threads.add(headers, owner)

    def scan(self):
        """Delivers the messages that are not taken and were not delivered by this process."""
        self.imap.noop()
        self.grown()  # the search has what came before
        for uid in self.search(*self.unmarked.split(), "SINCE", since(CATCH_UP)):
            if uid in self.seen:
                continue
            self.seen.add(uid)
            try:
                self.deliver(uid)
            except FAULTS as e:
                warn("the message with the UID %s cannot be read: %r" % (uid.decode(), e))

    def grown(self):
        """Reports whether an answer has told of new messages since the last call. IDLE does not tell of them again."""
        return self.imap.response("EXISTS")[1] != [None]

    def deliver(self, uid):
        answer, message = self.fetch(uid, "(RFC822.SIZE BODY.PEEK[HEADER])")
        owner = message is not None and sender_of(message)
        if not owner:
            return
        size = int((re.search(rb"RFC822\.SIZE (\d+)", answer) or [0, 0])[1])
        text, quoted, files = "[a mail of %d bytes, which is too large to read]" % size, "", []
        if size <= MOST_MAIL:
            _, message = self.fetch(uid, "(BODY.PEEK[])")
            text, quoted = text_of(message)
            files = list(files_of(message))
        own_id, channel = threads.add(message, owner)
        if not is_reply(message):
            text = "\n\n".join(filter(None, [message.get("Subject", ""), text]))
        self.uids.setdefault(own_id, []).append(uid)
        replied = message.get("In-Reply-To", "").strip()
        line = {
            "id": own_id, "channel": channel, "user": owner, "name": message["From"].addresses[0].display_name or owner,
            "direct": True, "addressed": True, "text": text, "reply_to": to_id(replied) if replied else "",
            "files": [
                {"id": "%s-%d" % (own_id, n), "name": name, "size": len(content(part)), "address": "%s.%d" % (uid.decode(), n),
                 "voice": part.get_content_maintype() == "audio"}
                for n, (name, part) in enumerate(files)
            ],
        }
        if quoted:
            line["quoted"] = {"text": quoted, "own": bool(OWN.fullmatch(replied))}
        write(type="message", **line)

    def take(self, own_id):
        for uid in self.uids.pop(own_id, []):
            self.imap.uid("STORE", uid, "+FLAGS.SILENT", r"(\Seen %s)" % self.mark)

    def download(self, request):
        try:
            uid, number = re.fullmatch(r"(\d+)\.(\d+)", request["address"]).groups()
            _, message = self.fetch(uid.encode(), "(BODY.PEEK[])")
            data = content(list(files_of(message))[int(number)][1])
            if len(data) > request["most"]:
                raise ValueError("the file has %d bytes" % len(data))
            with open(request["path"], "wb") as f:
                f.write(data)
        except FAULTS as e:
            return write(type="failed", ref=request["ref"], error="the file cannot be read: %s" % e, refused=True)
        except (OSError, imaplib.IMAP4.error) as e:
            write(type="failed", ref=request["ref"], error=str(e))
            raise
        write(type="done", ref=request["ref"])

    def wait(self):
        """Waits for a new message or for what is asked; half a minute if the server cannot tell of new messages."""
        if "IDLE" in self.imap.capabilities:
            self.idle()
        else:
            select.select([self.wake], [], [], PATIENCE / 2)
        if select.select([self.wake], [], [], 0)[0]:
            os.read(self.wake, 1 << 16)

    def idle(self):
        """Waits by the command IDLE. imaplib has it since Python 3.14 only, and reads ahead of what it returns."""
        heard, connection = b"", self.imap.socket()

        def hear():
            data = connection.recv(1 << 16)
            if not data:
                raise imaplib.IMAP4.abort("the server has closed the connection")
            return data

        self.imap.send(b"OLLIM IDLE\r\n")
        while not re.search(rb"^\+", heard, re.M):
            heard += hear()
        late = time.monotonic() + IDLE
        while b"EXISTS" not in heard and time.monotonic() < late:
            if not connection.pending():
                ready = select.select([connection, self.wake], [], [], IDLE)[0]
                if connection not in ready:
                    break
            heard += hear()
        self.imap.send(b"DONE\r\n")
        while not re.search(rb"^OLLIM .*\r\n", heard, re.M):
            heard += hear()


def content(part):
    return part.get_payload(decode=True) or b""


def since(days):
    return imaplib.Time2Internaldate(time.time() - days * 86400)[1:12].strip()


# --- SMTP, in another thread ---------------------------------------------------------------------------------------------------------------


def compose(request):
    """Returns the message of a request, with its id and what its replies need."""
    text, channel, found = request.get("text", ""), request["channel"], threads.find(request.get("reply_to"), request["channel"])
    if not found and channel != DIRECT:
        raise ValueError("there is no thread " + channel)
    parent, references, subject, owner = found or (None, [], "", args.owner[0])
    message = email.message.EmailMessage(email.policy.SMTP.clone(max_line_length=900))  # a Message-ID that is folded is another one
    if found:
        references = (references[:1] + references[1:][-18:] if references else []) + [parent]
        message["In-Reply-To"], message["References"] = parent, " ".join(references)
        subject = subject if re.match(r"re\s*:", subject, re.I) else "Re: " + subject
    else:
        subject = next(filter(None, (re.sub(r"[\s#*_`>]+", " ", line).strip() for line in text.splitlines())), "A message")[:70]
    random = hashlib.sha256(request["nonce"].encode()).hexdigest()[:20] if request.get("nonce") else os.urandom(10).hex()
    message_id = "<ollim.%s.%s@%s>" % (channel, random, args.address.rpartition("@")[2])
    message["Message-ID"], message["Date"] = message_id, datetime.datetime.now(datetime.timezone.utc)
    message["From"], message["To"], message["Subject"] = args.address, owner, " ".join(subject.split())
    message["Auto-Submitted"] = "auto-replied" if found else "auto-generated"
    message.set_content(text)
    for f in request.get("files", []):
        kind, _, sub = (f.get("type") or "application/octet-stream").partition(";")[0].strip().partition("/")
        with open(f["path"], "rb") as file:
            message.add_attachment(file.read(), maintype=kind, subtype=sub or "octet-stream", filename=f["name"])
    return message, (message_id, references, subject, owner, to_id(message_id) if channel == DIRECT else channel)


def send(request):
    failed = {}
    try:
        message, noted = compose(request)
        host, port = server_of(args.smtp, 465)
        context = ssl.create_default_context()
        if port == 587:
            smtp = smtplib.SMTP(host, port, timeout=PATIENCE / 2)
            smtp.starttls(context=context)
        else:
            smtp = smtplib.SMTP_SSL(host, port, timeout=PATIENCE / 2, context=context)
        with smtp:
            smtp.login(args.user or args.address, os.environ.get("PASSWORD", ""))
            smtp.send_message(message)
        threads.note(*noted)
        return write(type="done", ref=request["ref"], id=to_id(noted[0]))
    except smtplib.SMTPAuthenticationError as e:
        failed = {"error": "the server refuses the name or the password: %s" % e, "permanent": True}
    except smtplib.SMTPRecipientsRefused as e:
        failed = {"error": str(e), "refused": all(code >= 500 for code, _ in e.recipients.values())}
    except smtplib.SMTPResponseException as e:
        failed = {"error": str(e), "refused": e.smtp_code >= 500}
    except (OSError, smtplib.SMTPException) as e:
        failed = {"error": str(e)}
    except (ValueError, LookupError) as e:  # such as a bad type of a file
        failed = {"error": "no mail can be made of it: %r" % e, "refused": True}
    write(type="failed", ref=request["ref"], **{"error": "SMTP: " + failed.pop("error"), **failed})


def main():
    sys.stdin.readline()  # start: this door needs nothing of it
    mailbox, outgoing = Mailbox(), queue.Queue()
    threading.Thread(target=mailbox.serve, daemon=True).start()

    def post():
        for request in iter(outgoing.get, None):
            send(request)

    sending = threading.Thread(target=post, daemon=True)
    sending.start()
    for text in sys.stdin:
        request = json.loads(text)
        kind = request["type"]
        if kind == "taken":
            mailbox.ask(lambda own_id=request.get("id"): mailbox.take(own_id))
        elif kind == "fetch":
            mailbox.ask(lambda request=request: mailbox.download(request))
        elif kind == "send":
            outgoing.put(request)
        elif kind == "ping":
            write(type="done", ref=request["ref"])
        elif "ref" in request:
            write(type="failed", ref=request["ref"], error="unknown request", refused=True)
    outgoing.put(None)
    sending.join(4)
    mailbox.ask(lambda: os._exit(0))  # after what was taken is marked
    time.sleep(0.9)
    os._exit(0)


main()
