// The TypeScript SDK's second client against one URL, or a command: what it gets, as one line of JSON.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, where, ...args] = process.argv.slice(2);
const transport = where.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(where))
  : new StdioClientTransport({ command: where, args, stderr: "ignore" });
const client = new Client(
  { name: "test", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
);
const asked = [];
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(request.params.message);
  return { action: "decline" };
});
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const progress = [];
const counted = await client.callTool(
  { name: "py__count", arguments: { steps: 3 } },
  { onprogress: (each) => progress.push(each.progress) },
);
// Asking a client across the eras has its own issue; within the handshake era it works.
const answer = mode === "legacy" ? await client.callTool({ name: "py__ask", arguments: {} }) : null;
await client.close();
console.log(JSON.stringify({ tools, text: counted.content[0].text, answer: answer?.content[0].text, progress, asked }));
