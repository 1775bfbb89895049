package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-io/penstock/test/bench/internal/line"
)

// page is the answer to a scrape.
type page struct {
	bytes.Buffer
	header http.Header
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (*page) WriteHeader(int) {}

// scrape reads the service's metrics, as an operator sees them, into figures.
func scrape(metrics http.Handler, f *line.Figures) error {
	req, err := http.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	if err != nil {
		return err
	}
	p := &page{header: http.Header{}}
	metrics.ServeHTTP(p, req)
	for l := range strings.Lines(p.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(l), " ")
		if !ok || strings.HasPrefix(l, "#") {
			continue
		}
		// A label's value has spaces only in metrics that nobody asks for here.
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(name, "{")
		take(f, name, labels, v)
	}
	if p.Len() == 0 {
		return fmt.Errorf("scrape: no metrics")
	}
	return nil
}

func take(f *line.Figures, name, labels string, v float64) {
	switch name {
	case "penstock_messages_done_total":
		f.Done = int64(v)
	case "penstock_edge_connections":
		f.Consumers = int64(v)
	case "penstock_edge_stalls_total":
		f.Stalls = int64(v)
	case "penstock_edge_closed_total":
		if strings.Contains(labels, `"slow"`) {
			f.Slow = int64(v)
		}
	case "penstock_store_commits_total":
		f.Commits = int64(v)
	case "penstock_store_longest_commit_seconds":
		f.LongestCommit = time.Duration(v * float64(time.Second))
	case "penstock_waiting_in_store":
		f.Waiting += int64(v)
	case "penstock_queue":
		if !strings.Contains(labels, "stuck") { // those are running too
			f.Waiting += int64(v)
		}
	}
}
