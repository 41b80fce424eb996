// Starts the server of telegram-test-api: node server.cjs NODE_MODULES PORT. It ends with its standard input.
const [modules, port] = process.argv.slice(2);
const TelegramServer = require(`${modules}/telegram-test-api`);
const server = new TelegramServer({ host: "127.0.0.1", port: Number(port) });
server.start().then(() => console.log("ready"));
process.stdin.on("end", () => process.exit(0)).resume();
