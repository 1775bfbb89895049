package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/penstock-io/penstock/integrations/dingtalk/dingtalktest"
)

const (
	rowSoak  = "soak"
	soakRate = 2000
	// soakKeep is so short that what is remembered stops growing in the settling time.
	soakKeep  = time.Minute
	soakEvery = 5 * time.Second
)

// soak runs for as long as the option says, while the store forgets what is old. A
// fifth of the time is for settling; then the next fifth and the last one are
// compared.
func soak(b *bench, row string) error {
	path, err := b.fresh()
	if err != nil {
		return err
	}
	p, err := b.start(clientPenstock, 1, "-store", path, "-keep", soakKeep.String())
	if err != nil {
		return err
	}
	defer p.end()
	var r dingtalktest.BlastResult
	var memory, size []float64
	done := make(chan error, 1)
	go func() {
		done <- p.gateway.Ask(wordBlast, dingtalktest.BlastConfig{
			Size: frameSize, Rate: soakRate, Window: 100_000, Duration: b.opts.soak,
		}, &r)
	}()
	tick := time.NewTicker(min(soakEvery, b.opts.soak/50))
	defer tick.Stop()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			running = false
		case <-tick.C:
			kib, err := rss(p.client.PID())
			if err != nil {
				return err
			}
			memory = append(memory, float64(kib)/1024)
			size = append(size, mib(path))
		}
	}
	return p.soaked(b, row, r, memory, size)
}

func (p *pair) soaked(
	b *bench, row string, r dingtalktest.BlastResult, memory, size []float64,
) error {
	if err := p.settle(clientPenstock, int64(r.Pushed)); err != nil {
		return err
	}
	f, err := p.figures()
	if err != nil {
		return err
	}
	got := &samples{}
	got.add("minutes", b.opts.soak.Minutes(), "")
	got.add("messages", float64(r.Pushed), "")
	got.add("not acknowledged", float64(r.Pushed-r.Acked), "")
	got.add("p50", ms(r.P50), "ms")
	got.add("p99", ms(r.P99), "ms")
	got.add("p99.9", ms(r.P999), "ms")
	got.add("longest", ms(r.Max), "ms")
	got.add("longest commit", ms(f.LongestCommit), "ms")
	for i, v := range [][]float64{memory, size} {
		what := []string{"RSS", "file and log"}[i]
		early, late := fifths(v)
		got.add(what+" in the second fifth", early, "MiB")
		got.add(what+" in the last fifth", late, "MiB")
		b.out.atMost(row, what+" growth, %", 100*(late/early-1), 5)
	}
	b.out.atMost(row, "messages not acknowledged", float64(r.Pushed-r.Acked), 0)
	got.note = fmt.Sprintf("RSS %.0f, file and log %.0f MiB", each(memory), each(size))
	b.out.record(row, clientPenstock, got)
	return nil
}

// fifths gives the medians of the second and of the last fifth.
func fifths(v []float64) (second, last float64) {
	n := len(v) / 5
	return median(v[n : 2*n]), median(v[len(v)-n:])
}

// each gives the medians of ten stretches, for a reader to see the course.
func each(v []float64) (all []float64) {
	for part := range slices.Chunk(v, max(1, (len(v)+9)/10)) {
		all = append(all, median(part))
	}
	return all
}

// mib is the size of a store's file and its log.
func mib(path string) (size float64) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(filepath.Clean(path + suffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the log goes when the store is closed
		}
		if err == nil {
			size += float64(info.Size()) / (1 << 20)
		}
	}
	return size
}
