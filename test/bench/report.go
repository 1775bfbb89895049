package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run of the benchmark has found.
type report struct {
	Date    string   `json:"date"`
	Machine string   `json:"machine"`
	Go      string   `json:"go"`
	Figures []figure `json:"figures"`
	Targets []target `json:"targets"`
}

// figure is one measured number: the median of the rounds.
type figure struct {
	Row    string    `json:"row"`
	Client string    `json:"client"`
	What   string    `json:"what"`
	Value  float64   `json:"value"`
	Unit   string    `json:"unit"`
	Rounds []float64 `json:"rounds"`
	Note   string    `json:"note,omitempty"`
}

// target is a number that is to be reached.
type target struct {
	Row   string  `json:"row"`
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Least bool    `json:"least"` // Bound is the least; else it is the most
	Bound float64 `json:"bound"`
	Met   bool    `json:"met"`
}

func newReport() report {
	return report{
		Date: time.Now().UTC().Format("2006-01-02 15:04"), Go: runtime.Version(),
		Machine: fmt.Sprintf("%s, %d CPU, load %s", model(), runtime.NumCPU(), load()),
	}
}

// model is the processor's name.
func model() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	_, rest, _ := strings.Cut(string(raw), "model name")
	name, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(name, "\t :")
}

// samples are the numbers of one client in one row, by what they tell, in the order
// in which they were first added.
type samples struct {
	what  []string
	unit  map[string]string
	value map[string][]float64
	note  string
}

func (s *samples) add(what string, v float64, unit string) {
	if s.value == nil {
		s.value, s.unit = map[string][]float64{}, map[string]string{}
	}
	if _, ok := s.value[what]; !ok {
		s.what = append(s.what, what)
	}
	s.unit[what] = unit
	s.value[what] = append(s.value[what], v)
}

// get gives the numbers of all rounds; a client that was left out has none.
func (s *samples) get(what string) []float64 {
	if s == nil {
		return nil
	}
	return s.value[what]
}

// record puts the medians of samples into the report.
func (r *report) record(row, client string, s *samples) {
	for _, what := range s.what {
		r.Figures = append(r.Figures, figure{
			Row: row, Client: client, What: what, Value: median(s.value[what]),
			Unit: s.unit[what], Rounds: s.value[what], Note: s.note,
		})
	}
	if len(s.what) == 0 {
		r.Figures = append(r.Figures, figure{Row: row, Client: client, What: "none", Note: s.note})
	}
}

func (r *report) atLeast(row, what string, v, bound float64) {
	r.Targets = append(r.Targets, target{row, what, v, true, bound, v >= bound})
}

func (r *report) atMost(row, what string, v, bound float64) {
	r.Targets = append(r.Targets, target{row, what, v, false, bound, v <= bound})
}

// tell reports a ratio that has no bound.
func (r *report) tell(row, what string, v float64) {
	r.Figures = append(r.Figures, figure{Row: row, Client: "–", What: what, Value: v})
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// ratio is the median of the ratios of rounds, each of two runs made back to back.
func ratio(a, b []float64) float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			all = append(all, a[i]/b[i])
		}
	}
	return median(all)
}

func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s, %s\n\n", r.Date, r.Machine, r.Go)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\ttarget\tmeasured\tbound\t")
	for _, g := range r.Targets {
		sign, met := "≤", "met"
		if g.Least {
			sign = "≥"
		}
		if !g.Met {
			met = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s %s\t%s\n", g.Row, g.What, number(g.Value), sign, number(g.Bound), met)
	}
	fmt.Fprintln(t, "\t\t\t\t\nrow\tclient\tfigure\tmedian\tlowest–highest\tnote")
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s %s\t%s\t%s\n", f.Row, f.Client, f.What,
			number(f.Value), f.Unit, span(f.Rounds), f.Note)
	}
	return t.Flush()
}

func span(v []float64) string {
	if len(v) < 2 {
		return ""
	}
	return number(slices.Min(v)) + "–" + number(slices.Max(v))
}

// number writes three digits that matter.
func number(v float64) string {
	switch abs := cmp.Or(max(v, -v), 1); {
	case v == 0:
		return "0"
	case abs >= 100:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
