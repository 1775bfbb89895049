package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/penstock-io/penstock/message"
)

// maxReplies bounds the replies to one message. Nobody reads more, and small
// ones fit into an answer by the ten thousand.
const maxReplies = 100

// answer is one JSON object of a handler outside: an envelope with "replies",
// or the fields of a single reply, and "answer" with either.
type answer struct {
	message.Reply
	Replies []message.Reply `json:"replies"`
	Answer  json.RawMessage `json:"answer"`
}

// decodeBody reads the body of a successful HTTP response.
func decodeBody(contentType string, body []byte) (Result, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Result{}, nil
	}
	media, err := mediaType(contentType)
	if err != nil {
		return Result{}, err
	}
	switch {
	case media == "text/plain":
		return textResult(message.FormatText, body)
	case media == "text/markdown":
		return textResult(message.FormatMarkdown, body)
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return decodeObjects(body, 1)
	}
	return Result{}, fmt.Errorf(
		"content type %q is none of application/json, text/plain, text/markdown", cut(media, 64))
}

// mediaType reads a content type. Without one the body should be JSON.
func mediaType(contentType string) (string, error) {
	if contentType == "" {
		return "application/json", nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", fmt.Errorf("content type: %w", err)
	}
	switch charset := strings.ToLower(params["charset"]); charset {
	case "", "utf-8", "utf8", "us-ascii":
		return media, nil
	default:
		return "", fmt.Errorf("charset %q is not utf-8", cut(charset, 64))
	}
}

// textResult makes one reply of text, none if there is nothing but white space.
func textResult(format message.Format, text []byte) (Result, error) {
	reply := message.Reply{
		Format: format,
		Text:   strings.TrimRight(strings.ToValidUTF8(string(text), "\uFFFD"), " \t\r\n"),
	}
	var res Result
	err := res.add(reply)
	return res, err
}

// decodeObjects reads up to limit JSON objects that follow each other with
// nothing but white space between. A key that is not known is an error: it is
// most likely a misspelt one, and what it said would be lost.
func decodeObjects(body []byte, limit int) (Result, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var res Result
	for n := 0; ; n++ {
		var a *answer
		err := dec.Decode(&a)
		if errors.Is(err, io.EOF) {
			return res, nil
		}
		if err == nil && n == limit {
			err = errors.New("more than one JSON value")
		}
		if err == nil && a != nil {
			err = res.take(a)
		}
		if err != nil {
			return Result{}, fmt.Errorf("decode: %w", err)
		}
	}
}

// take adds what one object says.
func (r *Result) take(a *answer) error {
	replies := a.Replies
	if said(&a.Reply) {
		if replies != nil {
			return errors.New("has both replies and the fields of a single reply")
		}
		replies = []message.Reply{a.Reply}
	}
	for i := range replies {
		if err := r.add(replies[i]); err != nil {
			return fmt.Errorf("reply %d: %w", i+1, err)
		}
	}
	if len(a.Answer) == 0 || string(a.Answer) == "null" {
		return nil
	}
	if r.Answer != nil {
		return errors.New("has a second answer")
	}
	r.Answer = a.Answer
	return nil
}

// said tells whether any field of a single reply was there.
func said(r *message.Reply) bool {
	return r.Format != "" || r.Title != "" || r.Text != "" || r.Mentions != nil ||
		r.MentionAll || r.Card != nil
}

// add appends a reply after a check. One that says nothing is left out.
func (r *Result) add(reply message.Reply) error {
	if string(reply.Card) == "null" {
		reply.Card = nil
	}
	if reply.Format == "" && len(reply.Card) > 0 {
		reply.Format = message.FormatCard
	}
	switch reply.Format {
	case "", message.FormatText, message.FormatMarkdown:
		if strings.TrimSpace(reply.Text) == "" {
			return nil
		}
	case message.FormatCard:
		if len(reply.Card) == 0 {
			return errors.New("format is card and card is not set")
		}
	default:
		return fmt.Errorf("format %q is none of text, markdown, card", cut(string(reply.Format), 64))
	}
	if len(r.Replies) == maxReplies {
		return fmt.Errorf("more than %d replies", maxReplies)
	}
	r.Replies = append(r.Replies, reply)
	return nil
}
