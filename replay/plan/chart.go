package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"highwater/analyze/report/plot"
)

// maxLines bounds the lines of a chart: more than these nobody tells apart.
const maxLines = 12

// Charts are the plan as pictures: the peak with its 95 % interval against the limit, and the proof
// interval, along the first axis of numbers, a line for each combination of the other settings.
func (r *Result) Charts() []plot.Chart {
	axis := max(r.numberAxis(), 0)
	x := plot.Axis{Label: r.axes[axis].Name, Categories: r.places(axis)}
	peak := plot.Chart{
		Title: "Predicted peak memory", X: x,
		Y:      plot.Axis{Label: "peak, 95 % interval", Unit: plot.Bytes, FromZero: true},
		Limits: []plot.Limit{{Name: "limit", Y: float64(r.LimitBytes)}},
	}
	interval := plot.Chart{
		Title: "Predicted time a proof", X: x,
		Y: plot.Axis{Label: "proof interval", Unit: plot.Nanos, FromZero: true},
	}
	lines, left := r.lines(axis)
	if left > 0 {
		peak.Notes = append(peak.Notes, fmt.Sprintf(
			"%d further combinations are not drawn; the table and --json have them all.", left))
	}
	for _, l := range lines {
		peak.Series = append(peak.Series, r.series(l, x.Categories, axis, func(row *Row) plot.Point {
			return point(row.PeakBytes, row.PeakBytesLow, row.PeakBytesHigh)
		}))
		interval.Series = append(interval.Series, r.series(l, x.Categories, axis, func(row *Row) plot.Point {
			return point(row.ProofIntervalNS, row.ProofIntervalNSLow, row.ProofIntervalNSHigh)
		}))
	}
	return []plot.Chart{peak, interval}
}

// line is the rows that share everything but the first axis.
type line struct {
	name string
	rows []int
}

// places are the values of an axis that rows have, in order.
func (r *Result) places(axis int) (out []string) {
	for i := range r.Rows {
		if v := r.Rows[i].Set[r.axes[axis].Name]; !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		switch {
		case above(a, b):
			return 1
		case above(b, a):
			return -1
		}
		return 0
	})
	return out
}

// lines groups the rows; those beyond maxLines are only counted.
func (r *Result) lines(axis int) (out []line, left int) {
	at := map[string]int{}
	for i := range r.Rows {
		name := r.lineName(axis, r.Rows[i].Set)
		k, ok := at[name]
		if !ok && len(out) == maxLines {
			left++
			continue
		}
		if !ok {
			k = len(out)
			at[name] = k
			out = append(out, line{name: name})
		}
		out[k].rows = append(out[k].rows, i)
	}
	return out, left
}

// lineName is a row's settings off the axis; what follows the axis is named after it.
func (r *Result) lineName(axis int, set map[string]string) string {
	var parts []string
	for i, a := range r.axes {
		if i == axis {
			continue
		}
		value := set[a.Name]
		if !slices.Contains(a.Values, value) && slices.Contains(a.Values, r.axes[axis].Name) {
			value = r.axes[axis].Name
		}
		parts = append(parts, a.Name+"="+value)
	}
	if len(parts) == 0 {
		return "predicted"
	}
	return strings.Join(parts, " ")
}

func (r *Result) series(l line, places []string, axis int, of func(*Row) plot.Point) plot.Series {
	s := plot.Series{Name: l.name}
	for _, i := range l.rows {
		row := &r.Rows[i]
		p := of(row)
		p.X = float64(slices.Index(places, row.Set[r.axes[axis].Name]))
		p.Note = fmt.Sprintf("%s: %s", r.Name(i), row.Verdict)
		s.Points = append(s.Points, p)
	}
	slices.SortStableFunc(s.Points, func(a, b plot.Point) int { return int(a.X - b.X) })
	return s
}

func point(mid, low, high *int64) plot.Point {
	nan := math.NaN()
	p := plot.Point{Y: nan, Low: nan, High: nan}
	if mid != nil {
		p.Y = float64(*mid)
	}
	if low != nil && high != nil {
		p.Low, p.High = float64(*low), float64(*high)
	}
	return p
}
