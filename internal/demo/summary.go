package demo

import (
	"slices"
	"time"
)

// Summary is what came of a demo.
type Summary struct {
	// Frames is what the gateway pushed, second copies included; Acked the answers
	// that it read.
	Frames int `json:"frames"`
	Acked  int `json:"acked"`
	// Handled counts runs of the handler, Replied what the platform took.
	Handled int `json:"handled"`
	Replied int `json:"replied"`
	// Lost messages were pushed and never handled, or their reply never came.
	Lost int `json:"lost"`
	// Duplicates are second runs of the handler or second replies for one message,
	// beside those of Again and Doubted.
	Duplicates int `json:"duplicates"`
	// Inversions are messages of a conversation that were handled before one that
	// was pushed earlier, or beside another. A message that reached the service
	// only when the gateway pushed it again is left out: it arrived later.
	Inversions int `json:"inversions"`
	Redials    int `json:"redials"`
	// AckP50 and AckP99 are from the push of a frame to its acknowledgement.
	AckP50 float64 `json:"ack_p50_ms"`
	AckP99 float64 `json:"ack_p99_ms"`
	// GapMax is the longest time from a planned redial's notice to the first
	// message on the successor.
	GapMax float64 `json:"gap_ms_max"`

	// Kills is how often the service was killed. Again are the messages that were
	// handled a second time because a kill came before the outcome of the first was
	// on the disk: the second run says so by its number, and no reply had been sent.
	// Doubted are the replies that were sent a second time because a kill came
	// between a request and its record, and the service said so.
	Kills   int `json:"-"`
	Again   int `json:"-"`
	Doubted int `json:"-"`
}

// OK tells whether nothing went wrong.
func (s Summary) OK() bool { return s.Lost == 0 && s.Duplicates == 0 && s.Inversions == 0 }

func (s *stage) summary() Summary {
	sum := Summary{Redials: s.redials(), Kills: s.kills}
	for i := range installations {
		st := s.app(i).Stats()
		sum.Frames += st.Pushed + st.Redelivered
	}
	s.book.fill(&sum)
	return sum
}

func (l *ledger) fill(sum *Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum.Acked, sum.Handled, sum.Replied = l.acks, l.handled, l.replied
	for _, e := range l.entries {
		if e.handled == 0 || l.replies[e.reply] == 0 {
			sum.Lost++
		}
		second := max(0, l.replies[e.reply]-1)
		doubted := min(second, e.doubts)
		sum.Doubted += doubted
		sum.Duplicates += e.twice + second - doubted
	}
	sum.Again, sum.Inversions = l.again, l.overlaps
	for _, handled := range l.order {
		sum.Inversions += inversions(handled)
	}
	slices.Sort(l.delays)
	sum.AckP50, sum.AckP99 = quantile(l.delays, .50), quantile(l.delays, .99)
	sum.GapMax = ms(l.gap)
}

func inversions(handled []*entry) int {
	n, last := 0, 0
	for _, e := range handled {
		if len(e.pushes) == 0 || len(e.pushes[0].Tries()) != 1 {
			continue
		}
		if e.number < last {
			n++
		}
		last = max(last, e.number)
	}
	return n
}

func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return ms(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
