package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// row is one line of the table of targets.
type row struct {
	name    string
	slow    bool // left out by -quick
	measure func(b *bench, row string) error
}

var rows = []row{
	{"throughput, plain text", false, throughput(plainText)},
	{"throughput, real text", false, throughput(realText)},
	{"slow handler", false, slowHandler},
	{"order", false, order},
	{"redial", false, redial},
	{"stop", false, stop},
	{"idle", false, idle},
	{"black hole", true, blackHole},
	{"durable throughput", false, durable(fewChats)},
	{"durable throughput, 1,000 chats", false, durable(1000)},
	{"durable at 5,000/s", false, durablePaced},
	{"durable slow handler", false, durableSlow},
	{"start with a backlog", true, startWithBacklog},
	{"outbox", false, outbox},
	{rowSoak, false, soak},
}

// Contents of messages. The second has what chats have: several scripts, quotes and
// line breaks that are escaped twice on the way, a link, an emoji outside the BMP.
const (
	plainText = ""
	realText  = "@Ops 请看一下 \"checkout\" 的告警：p99 升到 850 ms，\n" +
		"see https://grafana.example.com/d/abc?from=now-1h&to=now — thanks! 👍 "
)

// fewChats is how many conversations take turns, where nothing else is said.
const fewChats = 100

// frameSize is that of a message with 1 KiB of data.
const frameSize = 1373

// seconds shortens a run for -quick.
func (b *bench) seconds(n int) time.Duration {
	if b.opts.quick {
		n = (n + 2) / 3
	}
	return time.Duration(n) * time.Second
}

// warmUp lets a client reach its steady state.
var warmUp = dingtalktest.BlastConfig{Size: frameSize, Duration: 500 * time.Millisecond}

// throughput pushes as fast as one client after the other answers.
func throughput(text string) func(*bench, string) error {
	return func(b *bench, row string) error {
		clients := b.chosen(clientBare, clientPenstock, clientDecode, clientRun, clientSDK)
		got := map[string]*samples{}
		for range b.opts.rounds {
			for _, c := range clients {
				if got[c] == nil {
					got[c] = &samples{}
				}
				if err := b.saturate(c, text, fewChats, got[c]); err != nil {
					got[c].note = err.Error()
				}
			}
		}
		for _, c := range clients {
			b.out.record(row, c, got[c])
		}
		ours := got[clientPenstock].get(rate)
		b.out.atLeast(row, "acks/s ÷ decoding bare loop", ratio(ours, got[clientDecode].get(rate)), 3)
		b.out.atLeast(row, "acks/s ÷ bare loop", ratio(ours, got[clientBare].get(rate)), 0.7)
		b.out.atMost(row, "CPU µs per message", median(got[clientPenstock].get(perMessage)), 15)
		return nil
	}
}

// chosen leaves out the clients that are not to be measured.
func (b *bench) chosen(clients ...string) []string {
	return slices.DeleteFunc(clients, func(c string) bool { return !matches(b.opts.clients, c) })
}

// What is measured of a client under load.
const (
	rate       = "acks/s"
	perMessage = "CPU per message"
)

// saturate is one run of one client.
func (b *bench) saturate(client, text string, chats int, got *samples) error {
	p, err := b.start(client, 1)
	if err != nil {
		return err
	}
	defer p.end()
	warm := warmUp
	warm.Text, warm.Conversations = text, chats
	if err := p.gateway.Ask(wordBlast, warm, nil); err != nil {
		return err
	}
	before, err := p.measureStart(client)
	if err != nil {
		return err
	}
	var r dingtalktest.BlastResult
	err = p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
		Size: frameSize, Text: text, Window: 256, Conversations: chats,
		Duration: b.seconds(5), Drain: 2 * time.Second,
	}, &r)
	if err != nil {
		return err
	}
	late, err := p.settled(client, before.f.Done+int64(r.Acked))
	if err != nil {
		return err
	}
	if isPenstock(client) {
		got.add(lives, float64(r.Acked)/(r.Elapsed+late).Seconds(), "")
	}
	return p.measureEnd(client, before, r, got)
}

// state is what a client had used when a run began.
type state struct {
	cpu  time.Duration
	disk int // bytes written
	f    line.Figures
}

func (p *pair) measureStart(client string) (s state, err error) {
	if client != clientRun {
		if s.f, err = p.figures(); err != nil {
			return s, err
		}
	}
	if s.disk, err = written(p.client.PID()); err != nil {
		return s, err
	}
	s.cpu, err = cpu(p.client.PID())
	return s, err
}

// settle waits until Penstock has done so many messages: it acknowledges before.
func (p *pair) settle(client string, done int64) error {
	if !isPenstock(client) {
		return nil
	}
	for range 2000 {
		f, err := p.figures()
		if err != nil || f.Done >= done {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
	return fmt.Errorf("not all of %d messages were done", done)
}

func (p *pair) measureEnd(
	client string, before state, r dingtalktest.BlastResult, got *samples,
) error {
	used, err := cpu(p.client.PID())
	if err != nil {
		return err
	}
	n := float64(max(r.Acked, 1))
	got.add(rate, r.PerSecond(), "")
	got.add(perMessage, float64(used-before.cpu)/1e3/n, "µs")
	got.add("p50", ms(r.P50), "ms")
	got.add("p99", ms(r.P99), "ms")
	if r.Redelivered+r.Unanswered > 0 {
		got.note = fmt.Sprintf("%d pushed again, %d never answered", r.Redelivered, r.Unanswered)
	}
	if disk, err := written(p.client.PID()); err == nil && disk > before.disk {
		got.add(perMessageDisk, float64(disk-before.disk)/1024/n, "KiB")
	}
	if kib, err := rss(p.client.PID()); err == nil {
		got.add("RSS", float64(kib)/1024, "MiB")
	}
	if isPenstock(client) {
		f, err := p.figures()
		if err != nil {
			return err
		}
		got.add("allocated per message", float64(f.AllocBytes-before.f.AllocBytes)/n, "B")
		got.add("allocations per message", float64(f.Allocs-before.f.Allocs)/n, "")
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
