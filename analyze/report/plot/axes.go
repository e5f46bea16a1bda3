package plot

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"highwater/internal/units"
)

// figure writes one figure of an axis.
func figure(u Unit, v float64) string {
	switch u {
	case Bytes:
		return units.FloatBytes(v)
	case Nanos:
		return units.Nanos(int64(math.Round(v)))
	case Ratio:
		return units.Percent(v)
	case Count:
		return units.Count(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// tickText drops the zeros that a reader of an axis does not need: 2 GiB, not 2.00 GiB.
func tickText(u Unit, v float64) string {
	if v == 0 {
		return "0"
	}
	number, unit, _ := strings.Cut(figure(u, v), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + unit)
}

// ticks are round figures of a unit; powers of two for bytes.
type ticks struct{ unit Unit }

// wantedTicks is about how many labels an axis carries.
const wantedTicks = 6

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	step := roundStep((high-low)/wantedTicks, t.unit)
	if step <= 0 || math.IsInf(step, 0) || math.IsNaN(step) {
		return []plot.Tick{{Value: low, Label: tickText(t.unit, low)}}
	}
	var list []plot.Tick
	for i := math.Ceil(low / step); i*step <= high && len(list) < 10*wantedTicks; i++ {
		list = append(list, plot.Tick{Value: i * step, Label: tickText(t.unit, i*step)})
	}
	return list
}

// roundStep is the next round step at or above least.
func roundStep(least float64, u Unit) float64 {
	if least <= 0 {
		return 0
	}
	if u == Bytes {
		return max(1, math.Exp2(math.Ceil(math.Log2(least))))
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least {
			return m * power
		}
	}
	return 10 * power
}

// names are the ticks of an axis of categories: as many as fit beside each other.
type names struct{ categories []string }

// nameColumns is how many characters fit along the x axis of a picture.
const nameColumns = 90

// Ticks implements plot.Ticker.
func (n names) Ticks(low, high float64) []plot.Tick {
	longest := 1
	for _, c := range n.categories {
		longest = max(longest, len(c)+2)
	}
	every := max(1, (len(n.categories)*longest+nameColumns-1)/nameColumns)
	var list []plot.Tick
	for i, c := range n.categories {
		v := float64(i)
		if v < low || v > high {
			continue
		}
		if i%every != 0 {
			c = ""
		}
		list = append(list, plot.Tick{Value: v, Label: c})
	}
	return list
}

// edge is the share of an axis left free at each end, so that no point lies on the frame.
const edge = 0.06

// legendLine is the share of a picture's height that one line of its legend takes.
const legendLine = 0.045

func (c Chart) setAxes(p *plot.Plot) {
	p.X.Label.Text, p.Y.Label.Text = c.X.Label, c.Y.Label
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{c.X.Unit}, ticks{c.Y.Unit}
	fromZero := c.Y.FromZero && p.Y.Min >= 0
	if fromZero {
		p.Y.Min = 0
	}
	span := p.Y.Max - p.Y.Min
	if span <= 0 {
		span = max(math.Abs(p.Y.Max), 1e-9)
	}
	lines := len(c.Series) + len(c.Limits) + len(c.Marks)
	p.Y.Max += span * (edge + legendLine*float64(lines)) // the legend stands above
	if !fromZero {
		p.Y.Min -= span * edge
	}
	if c.X.Categories != nil {
		p.X.Min, p.X.Max = -0.5, float64(len(c.X.Categories))-0.5
		p.X.Tick.Marker = names{c.X.Categories}
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-0.5, p.X.Max+0.5
	}
}
