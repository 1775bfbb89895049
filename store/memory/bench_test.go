package memory_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/penstock-io/penstock/message"
	"github.com/penstock-io/penstock/store"
	"github.com/penstock-io/penstock/store/memory"
)

// BenchmarkLife is the whole life of a message of 1 KiB: it is appended in a group
// of 64, and a backlog later it is finished in a group of 64, without and with a
// reply that is then sent.
func BenchmarkLife(b *testing.B) {
	for _, bench := range []struct {
		name             string
		backlog, replies int
	}{
		{"empty", 64, 0},
		{"backlog of 50000", 50_048, 0},
		{"with a reply", 64, 1},
	} {
		b.Run(bench.name, func(b *testing.B) { life(b, bench.backlog, bench.replies) })
	}
}

const group = 64

func life(b *testing.B, backlog, replies int) {
	s, err := memory.New(memory.Config{MaxIDs: 200_000})
	if err != nil {
		b.Fatal(err)
	}
	msgs := make([]message.Inbound, 300_032)
	raw := message.Raw(strings.Repeat("x", 1024))
	for i := range msgs {
		msgs[i] = message.Inbound{
			ID: message.ID("msgExample" + strconv.Itoa(i) + "=="), Installation: "bot-1", Raw: raw,
		}
	}
	var appends [group]store.Append
	var finishes [group]store.Finish
	ops := make([]store.Op, 0, group)
	commit := func() {
		if err := s.Commit(b.Context(), ops); err != nil {
			b.Fatal(err)
		}
		ops = ops[:0]
	}
	next := 0
	appendGroup := func() {
		for i := range appends {
			appends[i] = store.Append{Message: &msgs[next%len(msgs)]}
			next++
			ops = append(ops, &appends[i])
		}
		commit()
	}
	for next < backlog-group {
		appendGroup()
	}
	b.ReportAllocs()
	b.ResetTimer()
	done := 0
	for range b.N / group {
		appendGroup()
		for i := range finishes {
			done++
			finishes[i] = store.Finish{Seq: store.Seq(done)}
			if replies > 0 {
				finishes[i].Replies = make([]message.Outbound, replies)
				finishes[i].Replies[0].ID = msgs[done%len(msgs)].ID
			}
			ops = append(ops, &finishes[i])
		}
		commit()
		if replies == 0 {
			continue
		}
		for i := range finishes {
			ops = append(ops, &store.Begin{Seq: finishes[i].ReplySeqs[0], Attempts: 1})
			ops = append(ops, &store.Sent{Seq: finishes[i].ReplySeqs[0]})
		}
		commit()
	}
}
