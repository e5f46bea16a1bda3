package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// example is a chart with everything in it.
func example() Chart {
	nan := math.NaN()
	return Chart{
		Title: `Peak by commit </script><b>`,
		Notes: []string{"Change at c3..c4."},
		X:     Axis{Label: "commit", Categories: []string{"c1", "c2", "c3", "c4", "c5"}},
		Y:     Axis{Label: "peak live", Unit: Bytes, FromZero: true},
		Series: []Series{
			{Name: "median", Points: []Point{
				{X: 0, Y: 1 << 30, Low: 0.9 * (1 << 30), High: 1.1 * (1 << 30)},
				{X: 1, Y: nan},
				{X: 3, Y: 3 << 30, Low: 2.5 * (1 << 30), High: 3.3 * (1 << 30), Note: "run 7"},
				{X: 4, Y: 3.1 * (1 << 30)},
			}},
			{Name: "runs", Dots: true, Points: []Point{{X: 0, Y: 1 << 30}, {X: 2, Y: 1.2 * (1 << 30)}}},
		},
		Limits: []Limit{{"limit", 4 << 30}},
		Marks:  []Mark{{"change", 2.5}},
	}
}

func TestHTMLNeedsNothingElse(t *testing.T) {
	var out bytes.Buffer
	if err := example().HTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, bad := range []string{"http://", "https://", "<link", "src=", `</script><b>`} {
		text := strings.ReplaceAll(page, "https://github.com/leeoniya/uPlot", "")
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, want := range []string{
		"drawCharts(", `"categories":["c1"`, "uPlot", `"high":[1181116006.4`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "NaN,") {
		t.Error("an unknown value is not null")
	}
}

func TestPictures(t *testing.T) {
	var picture, vector, again bytes.Buffer
	err := errors.Join(example().PNG(&picture), example().SVG(&vector), example().SVG(&again))
	if err != nil {
		t.Fatal(err)
	}
	image, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	if b := image.Bounds(); b.Dx() < 600 || b.Dy() < 300 {
		t.Errorf("the picture is %v", b)
	}
	if vector.String() != again.String() {
		t.Error("one chart gives two pictures")
	}
	d := xml.NewDecoder(strings.NewReader(vector.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"peak live", "c5", "limit 4.00 GiB", "2 GiB"} {
		if !strings.Contains(vector.String(), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, c := range map[string]Chart{
		"no series":    {},
		"only unknown": {Series: []Series{{Points: []Point{{Y: math.NaN()}}}}},
	} {
		if err := c.PNG(io.Discard); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v", name, err)
		}
	}
	back := Chart{Series: []Series{{Points: []Point{{X: 2, Y: 1}, {X: 1, Y: 1}}}}}
	if err := back.HTML(io.Discard); err == nil {
		t.Error("falling x passes")
	}
}

func TestOnePoint(t *testing.T) {
	for _, u := range []Unit{Plain, Bytes, Nanos, Ratio, Count} {
		c := Chart{Y: Axis{Unit: u}, Series: []Series{{Name: "one", Points: []Point{{X: 1, Y: 0}}}}}
		if err := errors.Join(c.PNG(io.Discard), c.HTML(io.Discard)); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// TestDownsampleKeepsPeaks: the extremes of the whole and of every stretch survive, and no point is
// invented.
func TestDownsampleKeepsPeaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		buckets := rapid.IntRange(1, 50).Draw(t, "buckets")
		rng := rapid.Uint64().Draw(t, "seed")
		points := make([]Point, n)
		for i := range points {
			rng = rng*6364136223846793005 + 1442695040888963407
			points[i] = Point{X: float64(i), Y: float64(rng >> 40)}
		}
		got := Downsample(points, buckets)
		if n > 4*buckets && len(got) > 4*buckets {
			t.Fatalf("%d points of %d in %d buckets", len(got), n, buckets)
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range points {
			low, high = min(low, p.Y), max(high, p.Y)
		}
		keptLow, keptHigh, last := math.Inf(1), math.Inf(-1), -1.0
		for _, p := range got {
			if p != points[int(p.X)] || p.X <= last {
				t.Fatalf("point %v is none of the series, or out of order", p)
			}
			keptLow, keptHigh, last = min(keptLow, p.Y), max(keptHigh, p.Y), p.X
		}
		if keptLow != low || keptHigh != high {
			t.Fatalf("kept %v to %v of %v to %v", keptLow, keptHigh, low, high)
		}
	})
}
