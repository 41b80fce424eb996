#!/usr/bin/env python3
"""A door of ollim for IRC: README.md walks through it, and ollim-door(5) has the protocol."""
import argparse, json, os, re, select, socket, ssl, sys, time

cli = argparse.ArgumentParser()
cli.add_argument("--plain", action="store_true", help="connect without TLS")
cli.add_argument("--trust-nicks", action="store_true", help="take the nick for the user: only on a server that your own people can enter")
cli.add_argument("server", metavar="HOST:PORT")
cli.add_argument("nick")
cli.add_argument("channels", metavar="CHANNEL", nargs="*")
args = cli.parse_args()

def command(text):
    irc.sendall(text.encode() + b"\r\n")

def line(**fields):
    print(json.dumps(fields), flush=True)

def to_id(name):  # the ids of ollim have letters, digits, '.', '_' and '-'
    return re.sub(rb"[^A-Za-z0-9.-]", lambda m: b"_%02X" % m[0][0], name.encode()).decode()

def from_id(channel):
    name = re.sub(rb"_([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), channel.encode()).decode()
    if re.search(r"[\s,\0]", name):
        raise ValueError("no channel of IRC: " + channel)
    return name

def heard(text):  # a line of the server
    tags, source, verb, rest = re.match(r"(?:@(\S+) +)?(?::(\S+) +)?(\S*) *(.*)", text).groups(default="")
    if verb == "PING":
        command("PONG " + rest)
    elif verb == "001":  # welcome
        for channel in args.channels:
            command("JOIN " + channel)
        line(type="hello", version=1, mentions=[args.nick + ":"], able={"text": 2000})
    elif verb == "PRIVMSG":
        target, _, said = rest.partition(" ")
        mention, reply, said = re.match(r"(%s: *)?(?:re ([0-9a-f]{8}): *)?(.*)" % re.escape(args.nick), said.removeprefix(":")).groups()
        account = dict(tag.partition("=")[::2] for tag in tags.split(";")).get("account")
        sender, direct = source.split("!")[0], target == args.nick
        line(type="message", channel=to_id(sender if direct else target), user=account or (sender if args.trust_nicks else ""),
             name=sender, direct=direct, addressed=direct or bool(mention), text=said, reply_to=reply or "")
    elif verb == "433":  # the nick is in use, perhaps still by an earlier process
        time.sleep(1)
        command("NICK " + args.nick)
    elif verb == "PONG" and (number := rest.rpartition(":")[2]) in waiting:  # to the PING after a message
        line(**waiting.pop(number)[1])
    elif re.match(r"ERROR|[45]\d\d", verb):
        for to, answer in waiting.values():
            if to in rest.split(" "):  # it cannot be sent to
                answer.update(type="failed", error=rest, refused=True)
        print("IRC:", verb, rest, file=sys.stderr)

def asked(text):  # a line of ollim
    global sent
    request = json.loads(text)
    if request["type"] == "send":
        try:
            to, text, sent = from_id(request["channel"]), request["text"], max(sent + 1, int(time.time()))
        except ValueError as e:
            return line(type="failed", ref=request["ref"], error=str(e), refused=True)
        if not request.get("reply_to"):  # ollim speaks first: say how to reply
            text += "\n[re %08x: ...]" % sent
        for n, part in enumerate(re.findall(r"[^\r\n\0]{1,100}", text)):  # at most 400 bytes
            time.sleep(0.5 if n > 3 else 0)  # servers throttle floods
            command("PRIVMSG " + to + " :" + part)
        waiting[str(request["ref"])] = to, {"type": "done", "ref": request["ref"], "id": "%08x" % sent}
        command("PING :%d" % request["ref"])
    elif request["type"] == "ping":
        line(type="done", ref=request["ref"])
    elif "ref" in request:
        line(type="failed", ref=request["ref"], error="unknown request", refused=True)

host, port = args.server.rsplit(":", 1)
irc = socket.create_connection((host, int(port)))
if not args.plain:
    irc = ssl.create_default_context().wrap_socket(irc, server_hostname=host)
if "PASSWORD" in os.environ:
    command("PASS :" + os.environ["PASSWORD"])
for text in "CAP REQ :account-tag", "NICK " + args.nick, "USER " + args.nick + " 0 * :ollim", "CAP END":
    command(text)
waiting = {}  # messages of which the server has not said yet whether it has them
sent = 0  # the id of the last message: the second in which it was sent
rest = {irc: b"", 0: b""}  # of the last line
while True:
    ready = select.select([irc, 0], [], [], 300)[0] or sys.exit("IRC: the server has been silent for five minutes")
    for source in ready:
        data = source.recv(1 << 16) if source is irc else os.read(0, 1 << 16)
        while source is irc and not args.plain and irc.pending():
            data += irc.recv(irc.pending())
        if not data:
            sys.exit("IRC: the server has closed the connection" if source is irc else 0)
        *lines, rest[source] = (rest[source] + data).split(b"\n")
        for raw in lines:
            (heard if source is irc else asked)(raw.decode(errors="replace").rstrip("\r"))
