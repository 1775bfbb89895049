package payload

import (
	"math"
	"strings"
	"time"

	"github.com/penstock-io/penstock/internal/jsonscan"
	"github.com/penstock-io/penstock/message"
)

// body is what a message, a quoted message or an entry of a record holds.
type body struct {
	kind  message.Type
	text  string
	media []message.Media
	lead  int // of a card: the length of the first run of text
}

// parts are the members that the platform's bodies are made of, for all types.
type parts struct {
	whole jsonscan.Value // the object itself

	// Which one holds what was written depends on the type, and on the source.
	text, content, title jsonscan.Value

	rich, record, summary jsonscan.Value // bodies made of several parts

	// What is needed to fetch a file. A picture has two codes and often both.
	code, pictureCode, file, duration jsonscan.Value

	recognition jsonscan.Value // what the platform heard in a recording
	replied     jsonscan.Value // the message that is answered

	msgType, senderNick jsonscan.Value // of a run in a rich text, an entry in a record
}

// readParts reads an object, or a string that holds one. Any other string counts
// as the text.
func readParts(v jsonscan.Value) parts {
	v = open(v)
	p := parts{whole: v}
	if v.Kind() == jsonscan.String {
		p.text = v
	}
	for m := v.Members(); m.Next(); {
		p.take(m.Key(), m.Value())
	}
	return p
}

func (p *parts) take(key string, v jsonscan.Value) {
	switch key {
	case "text":
		p.text = v
	case "content":
		p.content = v
	case "title":
		p.title = v
	case "richText":
		p.rich = v
	case "chatRecord":
		p.record = v
	case "summary":
		p.summary = v
	case "downloadCode":
		p.code = v
	case "pictureDownloadCode":
		p.pictureCode = v
	case "recognition":
		p.recognition = v
	case "duration":
		p.duration = v
	case "fileName":
		p.file = v
	case "repliedMsg":
		p.replied = v
	case "msgType", "msgtype", "type":
		p.msgType = v
	case "senderNick":
		p.senderNick = v
	}
}

// open gives the document that a string holds, where one is expected; other
// values, and strings that hold no object and no array, come back as they are.
func open(v jsonscan.Value) jsonscan.Value {
	if v.Kind() != jsonscan.String {
		return v
	}
	text := strings.TrimLeft(v.Text(), " \t\r\n")
	if text == "" || text[0] != '{' && text[0] != '[' {
		return v
	}
	inner, err := jsonscan.Parse(text)
	if err != nil {
		return v
	}
	return inner
}

// firstValue gives the first value that is there.
func firstValue(values ...jsonscan.Value) jsonscan.Value {
	for _, v := range values {
		if v.Exists() {
			return v
		}
	}
	return jsonscan.Value{}
}

// firstText gives the first text that is not empty.
func firstText(values ...jsonscan.Value) string {
	for _, v := range values {
		if text := v.Text(); text != "" {
			return text
		}
	}
	return ""
}

var types = map[string]message.Type{
	"text": message.TypeText, "markdown": message.TypeMarkdown, "richText": message.TypeRich,
	"picture": message.TypeImage, "image": message.TypeImage, "audio": message.TypeAudio,
	"voice": message.TypeAudio, "video": message.TypeVideo, "file": message.TypeFile,
	"interactiveCard": message.TypeCard, "actionCard": message.TypeCard, "card": message.TypeCard,
	"chatRecord": message.TypeRecord,
}

func typeOf(msgType string, text, content *parts) message.Type {
	switch {
	case msgType == "text", msgType == "" && text.whole.Exists():
		return message.TypeText // the usual one, without a look at the map
	case msgType == "" && content.rich.Exists():
		return message.TypeRich
	}
	if t, ok := types[msgType]; ok {
		return t
	}
	return message.TypeUnknown
}

// readBody reads what a message of a type holds. text and content are the two
// places where the platform puts it.
func readBody(msgType string, text, content *parts, bot string) body {
	b := body{kind: typeOf(msgType, text, content)}
	switch b.kind {
	case message.TypeText:
		b.text = firstText(text.content, text.text, content.text, content.content)
	case message.TypeMarkdown:
		b.text = firstText(content.text, content.content, text.content, text.text)
	case message.TypeRich:
		b.readRich(open(content.rich), bot)
	case message.TypeAudio:
		b.text = firstText(content.recognition)
		b.addMedia(message.TypeAudio, content)
	case message.TypeImage, message.TypeVideo, message.TypeFile:
		b.addMedia(b.kind, content)
	case message.TypeCard:
		b.readCard(content.whole)
	case message.TypeRecord:
		b.readRecord(content, bot)
	default:
		b.text = firstText(text.content)
	}
	return b
}

// addMedia adds what the parts let somebody fetch, or at least name.
func (b *body) addMedia(kind message.Type, p *parts) {
	code, alt := p.code.Text(), p.pictureCode.Text()
	if code == "" {
		code, alt = alt, ""
	}
	name := p.file.Text()
	if code == "" && name == "" {
		return
	}
	b.media = append(b.media, message.Media{
		Kind: kind, Code: code, AltCode: alt, Name: name, Duration: readDuration(kind, p.duration),
	})
}

// maxSeconds is where a video's length stops to be seconds.
const maxSeconds = 1000

// readDuration reads a length in milliseconds. That of a video is documented as a
// string of seconds, too: a small number in a string is taken for one.
func readDuration(kind message.Type, v jsonscan.Value) time.Duration {
	n, ok := v.Float()
	unit := time.Millisecond
	if kind == message.TypeVideo && v.Kind() == jsonscan.String && n < maxSeconds {
		unit = time.Second
	}
	n *= float64(unit)
	if !ok || n <= 0 || n >= math.MaxInt64 {
		return 0
	}
	return time.Duration(n)
}

// readRich joins the runs of text and collects what is between them.
func (b *body) readRich(list jsonscan.Value, bot string) {
	var runs []string
	for e := list.Elements(); e.Next(); {
		if e.Value().Kind() != jsonscan.Object {
			continue
		}
		item := readParts(e.Value())
		if run := richText(&item, bot); run != "" {
			runs = append(runs, run)
		}
		kind, known := types[item.msgType.Text()]
		if !item.msgType.Exists() || kind == message.TypeText {
			kind, known = message.TypeImage, true
		}
		if known {
			b.addMedia(kind, &item)
		}
	}
	b.text = strings.Join(runs, "")
}

// richText is the text of one item. A mention of somebody else is part of the
// sentence; the bot's own is not, as it is not in a plain text.
func richText(item *parts, bot string) string {
	if item.msgType.Text() != "at" {
		return firstText(item.text, item.content)
	}
	id, name := "", ""
	for m := item.whole.Members(); m.Next(); {
		switch m.Key() {
		case "atUserId":
			id = m.Value().Text()
		case "atName":
			name = m.Value().Text()
		}
	}
	if name == "" || id == bot {
		return ""
	}
	return "@" + name
}

// readRecord writes the entries as lines; where they cannot be read, the summary
// has to do. A record inside a record is not opened.
func (b *body) readRecord(p *parts, bot string) {
	var lines []string
	for list := open(p.record).Elements(); list.Next(); {
		entry := readParts(list.Value())
		inner := readEntry(&entry, bot)
		b.media = append(b.media, inner.media...)
		if inner.text == "" {
			continue
		}
		if nick := entry.senderNick.Text(); nick != "" {
			inner.text = nick + ": " + inner.text
		}
		lines = append(lines, inner.text)
	}
	b.text = strings.Join(lines, "\n")
	if len(lines) == 0 {
		b.text = firstText(p.summary, p.title)
	}
}

func readEntry(entry *parts, bot string) body {
	if entry.record.Exists() {
		return body{text: firstText(entry.summary, entry.title)}
	}
	content := entry
	if open(entry.content).Kind() == jsonscan.Object {
		inner := readParts(entry.content)
		if inner.record.Exists() {
			return body{text: firstText(inner.summary, inner.title)}
		}
		content = &inner
	}
	b := readBody(entry.msgType.Text(), &parts{}, content, bot)
	if b.kind == message.TypeText && b.text == "" {
		b.text = entry.content.Text() // somebody sent JSON as a text
	}
	return b
}
