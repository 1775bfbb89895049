package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Bounds of a reply.
const (
	maxReply    = 256 << 10
	replyWithin = 10 * time.Second
)

// Codes of the vendor's webhook.
const (
	errcodeBusy    = -1
	errcodeBody    = 40035
	errcodeType    = 400105
	errcodeSession = 300001
)

// errMalformed and errUnknownType are why a body is no reply.
var (
	errMalformed   = errors.New("the body is not in the form of its msgtype")
	errUnknownType = errors.New("the msgtype is not known")
)

// reply takes a reply to the message whose address it was posted to.
func (s *Server) reply(w http.ResponseWriter, r *http.Request) {
	free, ok := hold(s.posts)
	if !ok {
		s.count.replies.add(resultBusy)
		webhookAnswer(w, http.StatusServiceUnavailable, errcodeBusy, "system busy")
		return
	}
	defer free()
	result := s.takeReply(w, r)
	s.count.replies.add(result)
}

func (s *Server) takeReply(w http.ResponseWriter, r *http.Request) (result string) {
	c, ss, err := s.unseal(r.URL.Query().Get("session"), time.Now())
	switch {
	case errors.Is(err, errExpiredSession):
		s.refuseReply(w, nil, &ss, errcodeSession, errExpiredSession)
		return resultExpired
	case err != nil:
		s.refuseReply(w, nil, &ss, errcodeSession, errUnknownSession)
		return resultRefused
	}
	body, err := readBody(w, r, maxReply)
	if err != nil {
		s.refuseReply(w, c, &ss, errcodeBody, errMalformed)
		return resultMalformed
	}
	reply, err := readReply(body)
	if err != nil {
		code := errcodeBody
		if errors.Is(err, errUnknownType) {
			code = errcodeType
		}
		s.refuseReply(w, c, &ss, code, err)
		return resultMalformed
	}
	ctx, cancel := context.WithTimeout(r.Context(), replyWithin)
	defer cancel()
	err = s.cfg.Outbox.Send(ctx, message.Outbound{
		Reply: reply, Installation: ss.Installation, Conversation: ss.Conversation,
		InReplyTo: ss.Message, Target: ss.Target,
	})
	if err != nil {
		// Not in the vendor's usual form, which is a success to clients that look at
		// the status alone: they would believe that the reply is on its way.
		s.log.Error("a reply of a consumer could not be stored", "consumer", c.name,
			"installation", string(ss.Installation), "message_id", string(ss.Message), "error", err)
		webhookAnswer(w, http.StatusServiceUnavailable, errcodeBusy, "system busy")
		return resultNotStored
	}
	webhookAnswer(w, http.StatusOK, 0, "ok")
	return resultOK
}

// refuseReply answers as the vendor does, and logs it now and then: the vendor's SDKs
// do not look at the code.
func (s *Server) refuseReply(
	w http.ResponseWriter, c *consumer, ss *session, code int, why error,
) {
	webhookAnswer(w, http.StatusOK, code, why.Error())
	s.refusals.Do(func() {
		log := s.log
		if c != nil {
			log = log.With("consumer", c.name, "installation", string(ss.Installation),
				"conversation", string(ss.Conversation), "message_id", string(ss.Message))
		}
		log.Warn("a reply of a consumer is refused", "errcode", code, "error", why)
	})
}

func webhookAnswer(w http.ResponseWriter, status, code int, text string) {
	writeJSON(w, status, struct {
		Code int    `json:"errcode"`
		Text string `json:"errmsg"`
	}{code, text})
}

// webhookBody is what the vendor's webhook takes, as far as it has a meaning here.
type webhookBody struct {
	Type string `json:"msgtype"`
	Text struct {
		Content string `json:"content"`
	} `json:"text"`
	Markdown struct {
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"markdown"`
	At struct {
		Users   []message.UserID `json:"atUserIds"`
		Mobiles []string         `json:"atMobiles"`
		Others  []string         `json:"atDingtalkIds"`
		All     bool             `json:"isAtAll"`
	} `json:"at"`
}

// vendorTypes leave in the vendor's form, because we have none of our own.
var vendorTypes = []string{"actionCard", "link", "feedCard"}

// readReply turns a body of the vendor's webhook into a reply.
func readReply(body []byte) (message.Reply, error) {
	var b webhookBody
	if json.Unmarshal(body, &b) != nil {
		return message.Reply{}, errMalformed
	}
	r := message.Reply{Mentions: b.At.Users, MentionAll: b.At.All}
	switch {
	case b.Type == "text":
		r.Format, r.Text = message.FormatText, b.Text.Content
	case b.Type == "markdown":
		r.Format, r.Title, r.Text = message.FormatMarkdown, b.Markdown.Title, b.Markdown.Text
	case slices.Contains(vendorTypes, b.Type):
		return verbatim(body), nil
	default:
		return message.Reply{}, fmt.Errorf("%w: %.40q", errUnknownType, b.Type)
	}
	if strings.TrimSpace(r.Text) == "" {
		return message.Reply{}, errMalformed
	}
	if len(b.At.Mobiles)+len(b.At.Others) > 0 { // a reply of ours cannot mention these
		return verbatim(body), nil
	}
	return r, nil
}

func verbatim(body []byte) message.Reply {
	return message.Reply{Format: message.FormatVendor, Card: body}
}
