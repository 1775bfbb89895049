package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
)

// drawInbound draws a message, with strings that are parts of its payload and
// others that are not.
func drawInbound(t *rapid.T) *message.Inbound {
	raw := rapid.String().Draw(t, "raw")
	text := func(name string) string {
		if len(raw) > 0 && rapid.Bool().Draw(t, name+" is a part") {
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
			return raw[at:rapid.IntRange(at, len(raw)).Draw(t, "to")]
		}
		return rapid.String().Draw(t, name)
	}
	when := func(name string) time.Time {
		if rapid.Bool().Draw(t, name+" is zero") {
			return time.Time{}
		}
		sec := rapid.Int64Range(-1<<40, 1<<40).Draw(t, name)
		return time.Unix(sec, rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")).UTC()
	}
	media := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) message.Media {
		return message.Media{
			Kind: message.TypeImage, Code: rapid.String().Draw(t, "code"), AltCode: text("alt"),
			Name: text("name"), Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
		}
	}), 0, 3)
	m := &message.Inbound{
		Schema: rapid.Int().Draw(t, "schema"), ID: message.ID(text("id")),
		FrameID: message.FrameID(text("frame")), Installation: message.InstallationID(text("in")),
		Platform: message.Platform(text("platform")), Kind: message.Kind(text("kind")),
		Topic: text("topic"),
		Conversation: message.Conversation{
			ID: message.ConversationID(text("conv")), Type: message.ChatGroup, Title: text("title"),
		},
		Sender: message.Sender{
			ID: message.UserID(text("sender")), StaffID: message.UserID(text("staff")),
			UnionID: message.UserID(text("union")), Name: text("nick"),
		},
		RobotCode: text("robot"), Type: message.Type(text("type")), Text: text("text"),
		MentionsBot: rapid.Bool().Draw(t, "mentions"), Unreadable: rapid.Bool().Draw(t, "unreadable"),
		PlatformError: text("error"), SentAt: when("sent"), ReceivedAt: when("received"),
		Attempt: rapid.Int().Draw(t, "attempt"), AnswerBy: when("answer"), Raw: message.Raw(raw),
	}
	if l := media.Draw(t, "media"); len(l) > 0 {
		m.Media = l
	}
	for range rapid.IntRange(0, 2).Draw(t, "people") {
		m.Mentions = append(m.Mentions, message.UserID(text("person")))
	}
	if rapid.Bool().Draw(t, "quotes") {
		m.Quote = &message.Quote{ID: message.ID(text("quoted")), Text: text("quote")}
		if l := media.Draw(t, "quoted media"); len(l) > 0 {
			m.Quote.Media = l
		}
	}
	return m
}

func TestInboundComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInbound(t)
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		body := appendInbound(before, m)
		require.Equal(t, before, body[:len(before):len(before)], "what was there stays")
		got, err := readInbound(body[len(before):])
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

// TestPartsAreKeptAsPlaces is why a message takes little more than its payload, and
// why its text shares the payload's memory when it comes back.
func TestPartsAreKeptAsPlaces(t *testing.T) {
	raw := `{"text":"a long text that should not be written twice","id":"m1"}`
	m := &message.Inbound{ID: message.ID(raw[61:63]), Text: raw[9:54], Raw: message.Raw(raw)}
	require.Equal(t, message.ID("m1"), m.ID)
	body := appendInbound(nil, m)
	require.Less(t, len(body), len(raw)+40)
	got, err := readInbound(body)
	require.NoError(t, err)
	require.Equal(t, m, got)
	at := uintptr(unsafe.Pointer(unsafe.StringData(got.Text))) -
		uintptr(unsafe.Pointer(unsafe.StringData(string(got.Raw))))
	require.Equal(t, uintptr(9), at)
}

func TestOutboundComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		o := &message.Outbound{
			Reply: message.Reply{
				Format: message.FormatMarkdown, Title: text.Draw(t, "title"), Text: text.Draw(t, "text"),
				MentionAll: rapid.Bool().Draw(t, "all"),
			},
			ID: message.ID(text.Draw(t, "id")), Installation: "bot", Conversation: "cid",
			InReplyTo: message.ID(text.Draw(t, "to")), Part: rapid.Int().Draw(t, "part"),
			Parts: rapid.Int().Draw(t, "parts"), Group: message.ID(text.Draw(t, "group")),
			CreatedAt: time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "at"), 0).UTC(),
		}
		if rapid.Bool().Draw(t, "more") {
			o.Card, o.Target = []byte(`{"a":1}`), message.Target("\x00\xff")
			o.Mentions = []message.UserID{"u1", "u2"}
		}
		got, err := readOutbound(appendOutbound(nil, o))
		require.NoError(t, err)
		require.Equal(t, o, got)
	})
}

// TestFieldsMayBeAdded reads what programs wrote that know fewer or more fields.
func TestFieldsMayBeAdded(t *testing.T) {
	m := &message.Inbound{ID: "m1", Installation: "bot", Text: "text", Attempt: 3, Raw: "raw"}
	whole := codec{payload: string(m.Raw)}
	whole.inbound(m)
	sealed := func(fields []byte) []byte {
		c := codec{b: append([]byte{codecVersion}, fields...), payload: string(m.Raw)}
		c.seal(1)
		return c.b
	}
	got, err := readInbound(sealed(append(whole.b, "a field of tomorrow"...)))
	require.NoError(t, err)
	require.Equal(t, m, got)
	early := codec{payload: string(m.Raw)}
	str(&early, &m.ID)
	got, err = readInbound(sealed(early.b))
	require.NoError(t, err)
	require.Equal(t, &message.Inbound{ID: "m1", Raw: "raw"}, got)
}

func TestBadItems(t *testing.T) {
	m := &message.Inbound{ID: "m1", Text: "text", Media: make([]message.Media, 3)}
	body := appendInbound(nil, m)
	for n := range body {
		_, err := readInbound(body[:n])
		require.ErrorIs(t, err, ErrDamaged, "cut off after %d", n)
	}
	body[0]++
	_, err := readInbound(body)
	require.ErrorIs(t, err, ErrDamaged, "another version")
	_, err = readOutbound(nil)
	require.ErrorIs(t, err, ErrDamaged)
}

func FuzzItem(f *testing.F) {
	samples, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, samples)
	for _, name := range samples {
		raw, err := os.ReadFile(name)
		require.NoError(f, err)
		r := string(raw)
		f.Add(appendInbound(nil, &message.Inbound{
			ID: "m1", Installation: "bot", Text: r[len(r)/2:], Raw: message.Raw(r),
			Media: []message.Media{{Code: r[:9]}}, Quote: &message.Quote{Text: r[1:3]},
			SentAt: time.Unix(1, 2), Mentions: []message.UserID{"u"},
		}))
	}
	f.Add(appendOutbound(nil, &message.Outbound{ID: "r", Target: message.Target("t")}))
	f.Add([]byte{codecVersion, 3, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		if m, err := readInbound(body); err == nil {
			again, err := readInbound(appendInbound(nil, m))
			require.NoError(t, err)
			require.Equal(t, m, again)
		}
		if o, err := readOutbound(body); err == nil {
			again, err := readOutbound(appendOutbound(nil, o))
			require.NoError(t, err)
			require.Equal(t, o, again)
		}
	})
}

func FuzzLog(f *testing.F) {
	var ids idLog
	ids.add(1, idKey{"bot", "a"})
	ids.add(2, idKey{"bot", "b"})
	ids.add(3, idKey{"bot-2", "b"})
	f.Add(ids.b)
	var ends endLog
	ends.add(end{box: store.BoxInbox, seq: 7, replies: []store.Seq{1, 2}})
	ends.add(end{box: store.BoxOutbox, seq: 1, receipt: message.Receipt{ID: "r"}})
	f.Add(ends.b)
	f.Add([]byte{logVersion, 0x80})
	f.Fuzz(func(t *testing.T, row []byte) {
		var again idLog
		if readIDs(row, again.add) == nil {
			var once, twice []idKey
			require.NoError(t, readIDs(row, func(_ store.Seq, k idKey) { once = append(once, k) }))
			require.NoError(t, readIDs(again.b, func(_ store.Seq, k idKey) { twice = append(twice, k) }))
			require.Equal(t, once, twice)
		}
		_ = readEnds(row, func(e end) bool {
			require.LessOrEqual(t, e.box, store.BoxOutbox)
			return true
		})
	})
}

func TestEndsComeBack(t *testing.T) {
	var l endLog
	want := []end{
		{box: store.BoxInbox, seq: 9, how: endDone, replies: []store.Seq{4, 5}},
		{box: store.BoxInbox, seq: 3, how: endDead},
		{box: store.BoxOutbox, seq: 4, how: endPurged},
		{box: store.BoxOutbox, seq: 5, receipt: message.Receipt{ID: "i", Route: "r", Warning: "w"}},
	}
	for _, e := range want {
		l.add(e)
	}
	require.Equal(t, [2]store.Seq{3, 4}, l.low)
	require.Equal(t, [2]store.Seq{9, 5}, l.high)
	var got []end
	require.NoError(t, readEnds(l.b, func(e end) bool { got = append(got, e); return len(got) < 3 }))
	require.Equal(t, want[:3], got, "it ends when told to")
	require.NoError(t, readEnds(nil, func(end) bool { return false }))
	require.ErrorIs(t, readEnds([]byte{99}, nil), ErrDamaged)
}

func BenchmarkCodec(b *testing.B) {
	raw := string(make([]byte, 1024))
	m := &message.Inbound{
		ID: message.ID(raw[3:30]), Installation: "bot-1", Text: raw[40:900], Raw: message.Raw(raw),
		Conversation: message.Conversation{ID: message.ConversationID(raw[50:90])},
		ReceivedAt:   time.Now(),
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		var body []byte
		for b.Loop() {
			body = appendInbound(body[:0], m)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		body := appendInbound(nil, m)
		for b.Loop() {
			if _, err := readInbound(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
