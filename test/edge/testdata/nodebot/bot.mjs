// A bot on the vendor's SDK for Node. The SDK has its host built in, so the requests
// that go there are turned to the gateway under test: node bot.mjs URL ID SECRET. It
// ends when its standard input does.
import axios from "axios";
import { DWClient, TOPIC_CARD, TOPIC_ROBOT } from "dingtalk-stream";

const [edge, clientId, clientSecret] = process.argv.slice(2);
axios.interceptors.request.use((req) => {
  req.url = req.url.replace("https://api.dingtalk.com", edge);
  return req;
});

const client = new DWClient({ clientId, clientSecret, ua: "nodebot" });
client.registerCallbackListener(TOPIC_ROBOT, async (frame) => {
  const message = JSON.parse(frame.data);
  await axios.post(message.sessionWebhook, {
    msgtype: "text",
    text: { content: "node: " + message.text.content },
  });
  client.socketCallBackResponse(frame.headers.messageId, { response: null });
  console.log("sent");
});
client.registerCallbackListener(TOPIC_CARD, (frame) => {
  client.socketCallBackResponse(frame.headers.messageId, { pressed: "node" });
});
client.connect();
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
