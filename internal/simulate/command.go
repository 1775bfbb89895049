package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Verb is what a line asks for.
type Verb string

// Verbs. Say is also that of plain text.
const (
	Say        Verb = "say"
	Conv       Verb = "conv"
	Direct     Verb = "direct"
	As         Verb = "as"
	Picture    Verb = "picture"
	File       Verb = "file"
	Card       Verb = "card"
	Event      Verb = "event"
	Dup        Verb = "dup"
	Ping       Verb = "ping"
	Disconnect Verb = "disconnect"
	Cut        Verb = "cut"
	BlackHole  Verb = "blackhole"
	Zombie     Verb = "zombie"
	Inject     Verb = "fault"
	Expire     Verb = "expire"
	Sessions   Verb = "sessions"
	Stats      Verb = "stats"
	Wait       Verb = "wait"
	Help       Verb = "help"
	Quit       Verb = "quit"
)

// Limits of a line.
const (
	maxText  = 16 << 10 // bytes that are said
	maxName  = 64       // bytes of a name
	maxWords = 16       // of a card
	maxCount = 1_000_000
	maxWait  = time.Hour
)

// Command is one line, understood.
type Command struct {
	Verb  Verb
	Text  string        // what is said, or the name of what the verb is about
	Words []string      // Card: what is pressed
	N     int           // a socket, 0 for all; Inject: how often, negative for always
	For   time.Duration // Wait
	Fault Fault         // Inject
}

// grammar is how a verb is written and what it does, as the help shows them.
type grammar struct {
	verb  Verb
	args  string
	does  string
	parse func(rest string, c *Command) error
}

// grammars stand in the order of the help.
var grammars = []grammar{
	{Say, "TEXT", "say TEXT as it stands, also if it begins with / or #", parseSay},
	{Conv, "NAME", "go on in the group NAME", parseName},
	{Direct, "NAME", "go on as NAME, in a chat of NAME with the bot", parseName},
	{As, "NICK", "go on as NICK", parseName},
	{Picture, "", "send a picture, which the bot can download", parseNothing},
	{File, "NAME", "send a file, which the bot can download", parseName},
	{Card, "[ACTION...]", "press a button of a card (default: agree)", parseCard},
	{Event, "TYPE", "push an event, such as user_add_org", parseWord},
	{Dup, "", "push the last message or event again: its id, a new frame", parseNothing},
	{Ping, "[SOCKET]", "send a SYSTEM ping, on all sockets or on one", parseSocket},
	{Disconnect, "[SOCKET]", "ask the bot to leave, as before a planned close", parseSocket},
	{Cut, "[SOCKET]", "reset the connection", parseSocket},
	{BlackHole, "[SOCKET]", "fall silent without closing, WebSocket pongs too", parseSocket},
	{Zombie, "[SOCKET]", "answer WebSocket pings only; pushes vanish", parseSocket},
	{Inject, "ROUTE KIND [N|all]", "fail the next N requests (default 1); off ends it", parseFault},
	{Expire, "tokens|webhooks", "end the access token, or all session webhooks", parseExpire},
	{Sessions, "", "list the sockets", parseNothing},
	{Stats, "", "show the counters", parseNothing},
	{Wait, "DURATION", "read the next line after this long, such as 500ms or 10s", parseWait},
	{Help, "", "show this", parseNothing},
	{Quit, "", "end", parseNothing},
}

func (g grammar) usage() string { return strings.TrimSpace("/" + string(g.verb) + " " + g.args) }

// Parse understands one line without its end. Plain text is said; a line that
// begins with a slash is a command. The error tells what is wrong and how the command
// is written; it does not name the line.
func Parse(line string) (Command, error) {
	if !utf8.ValidString(line) {
		return Command{}, errors.New("the line is not UTF-8")
	}
	line = strings.TrimSpace(line)
	name, rest := cutSpace(line)
	if !strings.HasPrefix(line, "/") {
		name, rest = "/"+string(Say), line
	}
	i := slices.IndexFunc(grammars, func(g grammar) bool { return "/"+string(g.verb) == name })
	if i < 0 {
		return Command{}, unknown(name[1:])
	}
	c := Command{Verb: grammars[i].verb}
	if err := grammars[i].parse(rest, &c); err != nil {
		return Command{}, fmt.Errorf("%s: %w; write %s", name, err, grammars[i].usage())
	}
	return c, nil
}

// cutSpace divides at the first white space.
func cutSpace(s string) (word, rest string) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// unknown is the error of a name that no command has, with the one that may be meant.
func unknown(name string) error {
	err := fmt.Errorf("there is no command %q", "/"+clip(name, maxName))
	for _, g := range grammars {
		verb := string(g.verb)
		if name != "" && (strings.HasPrefix(verb, name) || strings.HasPrefix(name, verb)) {
			return fmt.Errorf("%w; did you mean %s?", err, g.usage())
		}
	}
	return fmt.Errorf("%w; /help lists them, and /say TEXT says what begins with a slash", err)
}

func parseSay(rest string, c *Command) error {
	switch {
	case rest == "":
		return errors.New("there is nothing to say")
	case len(rest) > maxText:
		return fmt.Errorf("the text is longer than %d bytes", maxText)
	}
	c.Text = rest
	return nil
}

func parseNothing(rest string, _ *Command) error {
	if rest != "" {
		return errors.New("nothing may follow")
	}
	return nil
}

// parseName takes the rest of the line, spaces included.
func parseName(rest string, c *Command) error {
	switch {
	case rest == "":
		return errors.New("a name is missing")
	case len(rest) > maxName:
		return fmt.Errorf("the name is longer than %d bytes", maxName)
	case strings.ContainsFunc(rest, unicode.IsControl):
		return errors.New("the name has control characters")
	}
	c.Text = rest
	return nil
}

func parseWord(rest string, c *Command) error {
	if strings.ContainsFunc(rest, unicode.IsSpace) {
		return errors.New("it takes one word")
	}
	return parseName(rest, c)
}

func parseCard(rest string, c *Command) error {
	c.Words = strings.Fields(rest)
	if len(c.Words) > maxWords {
		return fmt.Errorf("there are more than %d actions", maxWords)
	}
	for _, word := range c.Words {
		if err := parseName(word, &Command{}); err != nil {
			return err
		}
	}
	if len(c.Words) == 0 {
		c.Words = []string{"agree"}
	}
	return nil
}

func parseSocket(rest string, c *Command) (err error) {
	if rest != "" {
		c.N, err = parseCount(rest)
	}
	return err
}

// parseCount reads a number of things, or that of a socket.
func parseCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxCount {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", clip(s, maxName), maxCount)
	}
	return n, nil
}

// What /expire takes.
const (
	expireTokens   = "tokens"
	expireWebhooks = "webhooks"
)

func parseExpire(rest string, c *Command) error {
	if rest != expireTokens && rest != expireWebhooks {
		return fmt.Errorf("%q does not expire", clip(rest, maxName))
	}
	c.Text = rest
	return nil
}

func parseWait(rest string, c *Command) error {
	d, err := time.ParseDuration(rest)
	if err != nil || d <= 0 || d > maxWait {
		return fmt.Errorf("%q is not a duration up to %v", clip(rest, maxName), maxWait)
	}
	c.For = d
	return nil
}

// clip shortens s to about n bytes, at a boundary of characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
