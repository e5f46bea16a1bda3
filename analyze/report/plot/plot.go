// Package plot draws charts from plain data: as a self-contained HTML page that can be read off the
// network (uPlot inside it), and as PNG or SVG for documents. It knows nothing of traces.
//
// Terms: a series is a line of points; a point's band is what is believed around it (Low to High);
// a limit is a horizontal line that the eye should compare with; a mark is a vertical line at a
// place on the x axis. NaN in Y is not known and leaves a gap, never a zero.
package plot

import (
	"errors"
	"fmt"
	"math"
)

// Unit says how an axis writes its figures.
type Unit string

// Units of an axis.
const (
	Plain Unit = ""      // 1.5
	Bytes Unit = "bytes" // 1.50 GiB
	Nanos Unit = "ns"    // 39.9 s
	Ratio Unit = "ratio" // 97.8 %
	Count Unit = "count" // 1,273,284
)

// Axis is one axis. The zero Axis has no label and plain figures.
type Axis struct {
	Label string
	Unit  Unit
	// Categories, for x only, names the places 0, 1, 2 … (commits, settings): points then have
	// whole numbers as X. Nil is an axis of figures.
	Categories []string
	// FromZero makes the axis begin at 0, for sizes whose share matters.
	FromZero bool
}

// Point is one value with what is believed around it.
type Point struct {
	X, Y      float64 // Y NaN: not known
	Low, High float64 // the band; both NaN, or both 0 with another Y: none
	Note      string  // shown in HTML when the point is under the cursor
}

// Series is a line of points, in rising X.
type Series struct {
	Name   string
	Points []Point
	Dots   bool // dots only, not joined: single runs
	Dashed bool // for what was predicted beside what was measured
}

// Limit is a horizontal line: a memory limit, a target.
type Limit struct {
	Name string
	Y    float64
}

// Mark is a vertical line: a change point.
type Mark struct {
	Name string
	X    float64
}

// Chart is everything that a picture shows.
type Chart struct {
	Title  string
	Notes  []string // sentences under the chart, in HTML
	X, Y   Axis
	Series []Series
	Limits []Limit
	Marks  []Mark
	// Buckets is how many places along x are kept of a long series; 0 means 1,000. Of each bucket
	// the first, the lowest, the highest and the last point stay, so that peaks survive.
	Buckets int
}

// ErrEmpty is returned for a chart without a single known point.
var ErrEmpty = errors.New("draw chart: no series has a point: record more, or name another metric")

const usualBuckets = 1000

// prepared is the chart with its series down-sampled, or why it cannot be drawn.
func (c Chart) prepared() (Chart, error) {
	buckets := c.Buckets
	if buckets <= 0 {
		buckets = usualBuckets
	}
	known := false
	series := make([]Series, len(c.Series))
	for i, s := range c.Series {
		for j, p := range s.Points {
			if math.IsNaN(p.X) || math.IsInf(p.X, 0) || j > 0 && p.X < s.Points[j-1].X {
				return c, fmt.Errorf("draw chart %q: series %q: point %d: x is %v: give points "+
					"in rising x", c.Title, s.Name, j, p.X)
			}
			known = known || isKnown(p.Y)
		}
		series[i] = s
		series[i].Points = Downsample(s.Points, buckets)
	}
	if !known {
		return c, ErrEmpty
	}
	c.Series = series
	return c, nil
}

func isKnown(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// hasBand says whether a point carries a band.
func (p Point) hasBand() bool {
	return isKnown(p.Low) && isKnown(p.High) && isKnown(p.Y) &&
		(p.Low != 0 || p.High != 0 || p.Y == 0) && p.Low <= p.High
}
