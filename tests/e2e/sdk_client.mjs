// The TypeScript SDK's own client against one URL: what it sees and gets, as one line of JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, kind] = process.argv.slice(2);
const transport =
  kind === "sse" ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url));
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: "decline" };
});
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const progress = [];
const result = await client.callTool({ name: "py__count", arguments: { steps: 3 } }, undefined, {
  onprogress: (each) => progress.push(each.progress),
});
const answer = await client.callTool({ name: "py__ask", arguments: {} });
if (kind !== "sse") await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ tools, text: result.content[0].text, answer: answer.content[0].text, progress, asked }));
