//go:build unix

package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/sqlite"
)

// sample is a message with a payload of 1 KiB, of which it shares fields as a
// decoded one does. Ids are in no order, as those of the platforms are not.
func sample(n int) *message.Inbound {
	id := fmt.Sprintf("msg%016x%012x==", uint64(n)*0x9e3779b97f4a7c15, n)
	conv := "cidExample" + strconv.Itoa(n%10_000) + "+AAAAAAAAAAAAAAAAAAAAAAAA="
	head := `{"msgId":"` + id + `","conversationId":"` + conv + `","senderNick":"Example User",` +
		`"senderId":"$:LWCP_v1:$exampleSender0001","text":{"content":"`
	raw := head + strings.Repeat("x", 1024-len(head)-3) + `"}}`
	part := func(s string) string {
		at := strings.Index(raw, s)
		return raw[at : at+len(s)]
	}
	return &message.Inbound{
		Schema: message.Schema, ID: message.ID(part(id)), Installation: "bot-1",
		Platform: "dingtalk", Kind: message.KindMessage, Topic: "/v1.0/im/bot/messages/get",
		Conversation: message.Conversation{
			ID: message.ConversationID(part(conv)), Type: message.ChatGroup,
		},
		Sender: message.Sender{ID: message.UserID(part("$:LWCP_v1:$exampleSender0001"))},
		Type:   message.TypeText, Text: raw[len(head) : len(raw)-3],
		ReceivedAt: time.Now(), Attempt: 1, Raw: message.Raw(raw),
	}
}

// life takes one message at a time from append to finish.
type life struct {
	w       *store.Writer
	append  store.Append
	finish  store.Finish
	replies int
	start   func(*life)
	// backlog, if any, is where lives wait, to be finished in no order.
	backlog *[]*life
}

// finishAny puts a life into the backlog and finishes one of those there.
func (l *life) finishAny() {
	pool := *l.backlog
	i := rand.IntN(len(pool))
	l, pool[i] = pool[i], l
	_ = l.w.Submit(&l.finish, l)
}

func (l *life) Committed(op store.Op, err error) {
	if err != nil {
		panic(err)
	}
	switch op := op.(type) {
	case *store.Append:
		l.finish = store.Finish{Seq: op.Seq}
		if l.replies > 0 {
			l.finish.Replies = []message.Outbound{{
				Reply: message.Reply{Text: op.Message.Text[:200]}, ID: op.Message.ID + "/1",
				Installation: "bot-1", Conversation: op.Message.Conversation.ID, Part: 1, Parts: 1,
				Target: message.Target("https://oapi.example.invalid/robot/sendBySession?session=0001"),
			}}
		}
		if l.backlog != nil {
			l.finishAny()
			return
		}
		_ = l.w.Submit(&l.finish, l)
	case *store.Finish:
		if l.replies > 0 {
			_ = l.w.Submit(&store.Begin{Seq: op.ReplySeqs[0], Attempts: 1}, l)
			return
		}
		l.start(l)
	case *store.Begin:
		_ = l.w.Submit(&store.Sent{Seq: op.Seq}, l)
	case *store.Sent:
		l.start(l)
	}
}

// BenchmarkLife is the whole life of a message of 1 KiB through the writer, with so
// many of them under way. It runs on the disk of BENCH_DIR, or of the default
// directory for temporary files.
func BenchmarkLife(b *testing.B) {
	for _, bench := range []struct {
		name                    string
		under, replies, backlog int
	}{
		{"1 under way", 1, 0, 0},
		{"64 under way", 64, 0, 0},
		{"256 under way", 256, 0, 0},
		{"256 under way and a reply", 256, 1, 0},
		{"256 under way before 2000 in no order", 256, 0, 2_000},
		{"256 under way before 20000 in no order", 256, 0, 20_000},
	} {
		b.Run(bench.name, func(b *testing.B) {
			lives(b, bench.under, bench.replies, bench.backlog)
		})
	}
}

func benchDir(b *testing.B) string {
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "bench")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
	return dir
}

func lives(b *testing.B, under, replies, backlog int) {
	s := open(b, sqlite.Config{Path: filepath.Join(benchDir(b), "penstock.db")})
	w, err := store.NewWriter(s, store.WriterConfig{})
	require.NoError(b, err)
	const distinct = 1 << 15
	samples := make([]*message.Inbound, distinct)
	for i := range samples {
		samples[i] = sample(i)
	}
	var pool []*life
	var first []store.Op
	for i := range backlog {
		l := &life{w: w, append: store.Append{Message: sample(-1 - i)}}
		pool, first = append(pool, l), append(first, &l.append)
	}
	require.NoError(b, s.Commit(b.Context(), first))
	var start func(*life)
	for _, l := range pool {
		l.finish = store.Finish{Seq: l.append.Seq}
		l.start = func(l *life) { start(l) }
	}
	b.ReportAllocs()
	b.ResetTimer()
	began, wrote, used := time.Now(), written(b), cpu(b)
	var n atomic.Int64
	var busy sync.WaitGroup
	start = func(l *life) {
		l.start = start
		if backlog > 0 {
			l.backlog = &pool
		}
		i := int(n.Add(1)) - 1
		if i >= b.N {
			busy.Done()
			return
		}
		m := *samples[i%distinct]
		m.ID = message.ID(strconv.Itoa(i/distinct)) + m.ID // not a part of the payload
		l.append = store.Append{Message: &m}
		_ = w.Submit(&l.append, l)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	for range under {
		busy.Add(1)
		start(&life{w: w, replies: replies})
	}
	busy.Wait()
	took := time.Since(began)
	b.StopTimer()
	cpuUsed := cpu(b) - used
	stop()
	running.Wait()
	st := w.Stats()
	require.NoError(b, s.Close())
	b.ReportMetric(float64(b.N)/took.Seconds(), "msg/s")
	b.ReportMetric(float64(cpuUsed.Microseconds())/float64(b.N), "cpu-us/msg")
	b.ReportMetric(float64(written(b)-wrote)/float64(b.N), "disk-B/msg")
	b.ReportMetric(float64(st.LongestCommit.Microseconds())/1000, "max-ms")
	b.ReportMetric(float64(st.Ops)/float64(st.Commits), "ops/commit")
	b.ReportMetric(float64(s.Stats().LongestCheckpoint.Microseconds())/1000, "ckpt-ms")
}

// written is what this process has caused to be written to the disk.
func written(b *testing.B) (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0 // only Linux tells
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "write_bytes: %d", &n); err == nil {
			return n
		}
	}
	return 0
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
