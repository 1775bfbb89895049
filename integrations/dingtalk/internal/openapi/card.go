package openapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/penstock-io/penstock/message"
)

// cardBody is what the card API takes to change a card: the fields of the
// reply's Card, which are those a handler may answer a card's callback with, and
// which card it is. A Card that names one by outTrackId goes before the one that
// was pressed. userPrivateData, which in an answer is for whoever pressed, is
// addressed to them.
func cardBody(t *Target, card json.RawMessage) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(card, &fields); err != nil || len(fields) == 0 {
		return nil, never("bad_card", errors.New("the card of the reply is no JSON object"))
	}
	if _, ok := fields["outTrackId"]; !ok {
		if t.Card == "" {
			return nil, never("no_card", errors.New("the reply names no card to change"))
		}
		fields["outTrackId"] = appendString(nil, t.Card)
	}
	if private, ok := fields["userPrivateData"]; ok && t.User != "" {
		delete(fields, "userPrivateData")
		b := append(appendName([]byte{'{'}, string(t.User)), private...)
		fields["privateData"] = append(b, '}')
		fields["userIdType"] = json.RawMessage(userIDTypes[t.UserType == 2])
	}
	body, err := encodeJSON(fields)
	if err != nil {
		return nil, never("bad_card", errors.New("the card of the reply cannot be encoded"))
	}
	return body, nil
}

// userIDTypes tells by "is it a union id" how the card API reads a user's id.
var userIDTypes = map[bool]string{false: "1", true: "2"}

func (s *Sender) cardCall(t *Target, o *message.Outbound) (call, error) {
	body, err := cardBody(t, o.Card)
	return call{
		route: routeCard, method: http.MethodPut,
		url: s.cfg.APIBase + "/v1.0/card/instances", body: body, token: true,
	}, err
}
