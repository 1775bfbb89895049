package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/message"
)

// errQuit is what /quit comes to.
var errQuit = errors.New("quit")

// errNoSocket means that a line had nothing to act on.
var errNoSocket = errors.New("no socket is open")

// do does one command. It waits only where the command says so, and in a script for
// a socket to act on.
func (s *stage) do(ctx context.Context, c Command) error {
	switch c.Verb {
	case Say, Picture, File:
		return s.say(s.robot(c))
	case Event:
		return s.event(c.Text)
	case Card:
		return s.press(c.Words)
	case Dup:
		return s.dup()
	case Conv, Direct, As:
		s.move(c)
	case Ping, Disconnect, Cut, BlackHole, Zombie:
		return s.each(ctx, c)
	case Inject:
		c.Fault.apply(s.gw, c.N)
		s.note("%s: %s", c.Fault.Route, c.Fault.told(c.N))
	case Expire:
		s.expire(c.Text)
	case Sessions:
		s.sessions()
	case Stats:
		s.stats()
	case Wait:
		return wait(ctx, c.For)
	case Help:
		s.note("%s", help())
	case Quit:
		return errQuit
	}
	return nil
}

// robot makes the message of a command.
func (s *stage) robot(c Command) dingtalktest.Robot {
	m := dingtalktest.Robot{
		Conversation: message.ConversationID(s.where.conversation), Direct: s.where.direct,
		Nick: s.where.nick, Sender: person("$:LWCP_v1:$", s.where.nick),
		Staff: person("staff-", s.where.nick),
	}
	if !s.where.direct {
		m.Fields = map[string]any{"conversationTitle": s.where.conversation}
	}
	switch c.Verb {
	case Picture:
		s.app.AddFile(pictureCode, picture())
		m.Type = "picture"
		m.Content = map[string]any{"downloadCode": pictureCode, "pictureDownloadCode": pictureCode}
	case File:
		code := "file-" + c.Text
		s.app.AddFile(code, []byte("This is "+c.Text+".\n"))
		m.Type = "file"
		m.Content = map[string]any{
			"downloadCode": code, "fileName": c.Text, "fileId": "160000000001",
			"spaceId": "24000000001", "fileType": strings.TrimPrefix(filepath.Ext(c.Text), "."),
		}
	default:
		m.Text = c.Text
	}
	return m
}

const pictureCode = "picture"

// picture is a PNG of one dot.
func picture() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))) // a buffer takes it
	return b.Bytes()
}

// say pushes a message, and has /dup say it again.
func (s *stage) say(m dingtalktest.Robot) error {
	e := event{
		Kind: m.Type, Conversation: string(m.Conversation), Direct: m.Direct,
		Sender: m.Nick, Text: m.Text,
	}
	set(&e.Kind, "text")
	if content, ok := m.Content.(map[string]any); ok {
		e.Text, _ = content["fileName"].(string)
	}
	set(&m.ID, s.newID())
	s.last = func() error { return s.push(m, e) }
	return s.last()
}

// newID is the id of a message that may be pushed twice.
func (s *stage) newID() message.ID {
	return message.ID(fmt.Sprintf("msgSimulated%d", time.Now().UnixNano()))
}

func (s *stage) event(typ string) error {
	m := dingtalktest.Event{Type: typ, ID: "event" + s.newID()}
	s.last = func() error { return s.push(m, event{Kind: "event", Text: typ}) }
	return s.last()
}

func (s *stage) press(actions []string) error {
	return s.push(dingtalktest.Card{
		Conversation: message.ConversationID(s.where.conversation),
		User:         person("staff-", s.where.nick), Actions: actions,
	}, event{
		Kind: "card", Conversation: s.where.conversation, Direct: s.where.direct,
		Sender: s.where.nick, Text: strings.Join(actions, " "),
	})
}

func (s *stage) dup() error {
	if s.last == nil {
		return errNothingSaid
	}
	return s.last()
}

// move changes where and as whom things are said.
func (s *stage) move(c Command) {
	switch c.Verb {
	case Conv:
		s.where.conversation, s.where.direct = c.Text, false
	case Direct:
		s.where = place{conversation: "direct-" + c.Text, direct: true, nick: c.Text}
	default:
		s.where.nick = c.Text
	}
	kind := "group"
	if s.where.direct {
		kind = "direct chat"
	}
	s.note("now %s in the %s %s", s.where.nick, kind, s.where.conversation)
}

// deeds are what can be done to a socket.
var deeds = map[Verb]func(*dingtalktest.Session){
	Ping:       (*dingtalktest.Session).Ping,
	Disconnect: (*dingtalktest.Session).Disconnect,
	Cut:        (*dingtalktest.Session).Cut,
	BlackHole:  func(x *dingtalktest.Session) { x.BlackHole(false) },
	Zombie:     (*dingtalktest.Session).Zombie,
}

// each does something to the sockets that are meant.
func (s *stage) each(ctx context.Context, c Command) error {
	sockets := s.meant(c.N)
	for len(sockets) == 0 && c.N == 0 && s.opts.Script != nil {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		sockets = s.meant(c.N)
	}
	switch {
	case len(sockets) > 0:
	case c.N > 0:
		return fmt.Errorf("no socket %d is open", c.N)
	default:
		return errNoSocket
	}
	for _, x := range sockets {
		s.show(event{Event: evSession, Socket: x.Info().ID, Done: c.Verb})
		deeds[c.Verb](x)
	}
	return nil
}

// meant are the sockets that a number means; 0 means those that are not asked to
// leave. One that has not been shown yet is none, so that what is done to it is shown
// behind it.
func (s *stage) meant(n int) (found []*dingtalktest.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.app.Sessions() {
		i := x.Info()
		if !s.shown[i.ID] {
			continue
		}
		if i.ID == n || n == 0 && i.State == dingtalktest.StateOpen {
			found = append(found, x)
		}
	}
	return found
}

func (s *stage) expire(what string) {
	if what == expireTokens {
		s.app.ExpireTokens()
	} else {
		s.app.ExpireWebhooks()
	}
	s.note("the %s have expired", what)
}

func (s *stage) sessions() {
	all := s.app.Sessions()
	if len(all) == 0 {
		s.note("%v", errNoSocket)
	}
	for _, x := range all {
		i := x.Info()
		e := socketEvent(i)
		e.Counts = &counts{
			Age: ms(time.Since(i.Opened)), Pushed: i.Pushed, Answers: i.Acks,
			Pings: i.Pings, Pongs: i.Pongs,
		}
		s.show(e)
	}
}

func (s *stage) stats() {
	st := stats(s.app.Stats())
	s.show(event{Event: evStats, Stats: &st})
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// told is what /fault has done.
func (f Fault) told(n int) string {
	switch {
	case f.Kind == off:
		return "served as usual"
	case n < 0:
		return f.Kind + " until off"
	default:
		return fmt.Sprintf("%s, %d time(s)", f.Kind, n)
	}
}

// help lists the commands, and what can fail with what.
func help() string {
	var b strings.Builder
	b.WriteString("Plain text is said in the current conversation. The commands:\n")
	for _, g := range grammars {
		fmt.Fprintf(&b, "  %-28s %s\n", g.usage(), g.does)
	}
	b.WriteString("What can fail with what:\n")
	for _, route := range strings.Split(list(faults), ", ") {
		fmt.Fprintf(&b, "  %-10s %s\n", route, list(faults[dingtalktest.Route(route)]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
