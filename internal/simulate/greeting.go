package simulate

import (
	"fmt"
	"strconv"

	"github.com/penstock-io/penstock/internal/config"
)

// open shows where the gateway is and how a bot is pointed at it.
func (s *stage) open() {
	id := s.app.Credentials().ClientID
	s.show(event{Event: evListen, URL: s.gw.URL(), ClientID: id})
	s.note("%s", greeting(s.gw.URL(), s.opts))
}

// greeting has a configuration that works as it stands. A secret that somebody chose
// is not in it.
func greeting(url string, o Options) string {
	secret := "${DINGTALK_CLIENT_SECRET} # what --client-secret says"
	if o.Secret == DefaultSecret {
		secret = DefaultSecret
	}
	text := fmt.Sprintf(`A simulated DingTalk serves at %[1]s. A penstock.yaml for it:

installations:
  - id: my-bot
    client_id: %[2]s
    client_secret: %[3]s
    api_base: %[1]s
    oapi_base: %[1]s
    allow_insecure: true
    topics: [/v1.0/im/bot/messages/get, /v1.0/card/instances/callback]
routes:
  - handler:
      echo: {} # or http: {url: "http://127.0.0.1:8080/messages"}

A bot on the vendor's Go SDK: client.WithOpenApiHost(%[4]q)
With Penstock between the two, in place of the routes above:

edge:
  consumers:
    - {name: my-bot, client_id: my-bot, client_secret: my-bot}
routes:
  - handler:
      edge: {consumer: my-bot}

and client.WithOpenApiHost(%[5]q) for a bot whose client id and
secret are my-bot; docs/simulate.md has it in full.`,
		url, strconv.Quote(o.ClientID), secret, url, "http://"+config.Default().Edge.Listen)
	if o.AwkwardTickets {
		text += "\nTickets have to be escaped in the URL, which the vendor's SDKs do not."
	}
	if o.Script == nil {
		text += "\n\nWhat you type is said to the bot; /help lists the commands."
	}
	return text + "\n"
}
