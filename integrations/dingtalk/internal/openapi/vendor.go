package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/penstock-io/penstock/message"
)

// vendorBody is a message in the form of DingTalk's webhook, as far as the robot
// API has a template for it.
type vendorBody struct {
	Type string `json:"msgtype"`
	Text struct {
		Content string `json:"content"`
	} `json:"text"`
	Markdown struct {
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"markdown"`
	Link struct {
		Title      string `json:"title"`
		Text       string `json:"text"`
		PicURL     string `json:"picUrl"`
		MessageURL string `json:"messageUrl"`
	} `json:"link"`
	ActionCard actionCard `json:"actionCard"`
}

type actionCard struct {
	Title       string `json:"title"`
	Text        string `json:"text"`
	SingleTitle string `json:"singleTitle"`
	SingleURL   string `json:"singleURL"`
	// Orientation is "1" for buttons side by side; some write it as a number.
	Orientation json.RawMessage `json:"btnOrientation"`
	Buttons     []button        `json:"btns"`
}

type button struct {
	Title string `json:"title"`
	URL   string `json:"actionURL"`
}

// maxButtons is how many the largest template has.
const maxButtons = 5

// checkVendor refuses what is no message at all.
func checkVendor(body json.RawMessage) error {
	var v struct {
		Type string `json:"msgtype"`
	}
	if json.Unmarshal(body, &v) != nil || v.Type == "" {
		return never("bad_body", errors.New("the reply is no JSON object with a msgtype"))
	}
	return nil
}

// vendorTemplate gives the template of the robot API that shows the same.
func vendorTemplate(body json.RawMessage) (msgKey string, param []byte, err error) {
	var v vendorBody
	if err := json.Unmarshal(body, &v); err != nil {
		return "", nil, never("bad_body", errors.New("the reply is not in the form of its msgtype"))
	}
	switch v.Type {
	case "text":
		msgKey, param = msgParam(&message.Outbound{Reply: message.Reply{Text: v.Text.Content}})
		return msgKey, param, nil
	case "markdown":
		msgKey, param = msgParam(&message.Outbound{Reply: message.Reply{
			Format: message.FormatMarkdown, Title: v.Markdown.Title, Text: v.Markdown.Text,
		}})
		return msgKey, param, nil
	case "link":
		return "sampleLink", object(
			"text", v.Link.Text, "title", v.Link.Title,
			"picUrl", v.Link.PicURL, "messageUrl", v.Link.MessageURL,
		), nil
	case "actionCard":
		return v.ActionCard.template()
	case "feedCard":
		return "", nil, never("feed_card_needs_webhook", errors.New(
			"the robot API has no template for a feedCard, and the webhook is over"))
	}
	return "", nil, never("unknown_type", fmt.Errorf(
		"the robot API has no template for msgtype %q", clip(v.Type)))
}

// template chooses by the number of buttons.
func (c *actionCard) template() (msgKey string, param []byte, err error) {
	if c.SingleTitle == "" && len(c.Buttons) == 1 {
		c.SingleTitle, c.SingleURL = c.Buttons[0].Title, c.Buttons[0].URL
	}
	fields := []string{"title", c.Title, "text", c.Text}
	switch n := len(c.Buttons); {
	case c.SingleTitle != "":
		return "sampleActionCard", object(
			append(fields, "singleTitle", c.SingleTitle, "singleURL", c.SingleURL)...), nil
	case n == 0 || n > maxButtons:
		return "", nil, never("too_many_buttons", fmt.Errorf(
			"the robot API shows 1 to %d buttons, the reply has %d", maxButtons, n))
	case n == 2 && c.sideBySide():
		return "sampleActionCard6", object(c.buttons(fields, "buttonTitle", "buttonUrl")...), nil
	default:
		key := "sampleActionCard" + strconv.Itoa(n)
		return key, object(c.buttons(fields, "actionTitle", "actionURL")...), nil
	}
}

func (c *actionCard) sideBySide() bool {
	return string(c.Orientation) == `"1"` || string(c.Orientation) == "1"
}

// buttons adds the numbered fields of the buttons.
func (c *actionCard) buttons(fields []string, title, url string) []string {
	for i, b := range c.Buttons {
		n := strconv.Itoa(i + 1)
		fields = append(fields, title+n, b.Title, url+n, b.URL)
	}
	return fields
}

// object encodes names and values in turn.
func object(pairs ...string) []byte {
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		b = appendField(b, pairs[i], pairs[i+1])
	}
	return append(b, '}')
}
