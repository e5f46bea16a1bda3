package analyze

import (
	"math"
	"testing"
)

func TestMannKendall(t *testing.T) {
	for name, c := range map[string]struct {
		y    []float64
		want float64
	}{
		"no values":     {nil, 0},
		"rising":        {[]float64{1, 2, 3, 4, 5, 6}, 2.63}, // S 15, variance 28.33
		"falling":       {[]float64{6, 5, 4, 3, 2, 1}, -2.63},
		"constant":      {[]float64{3, 3, 3, 3}, 0},
		"ties":          {[]float64{1, 1, 2, 2, 3, 3}, 2.19}, // S 12, variance 25.33
		"up and down":   {[]float64{1, 2, 1, 2, 1, 2}, 0.44},
		"a single pair": {[]float64{1, 2}, 0},
	} {
		if got := mannKendall(c.y); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: z %.2f, want %.2f", name, got, c.want)
		}
	}
}

func TestTheilSen(t *testing.T) {
	if got := theilSen([]float64{0, 2, 4, 1000, 8, 10}); got != 2 {
		t.Errorf("slope %v, want 2 in spite of one value", got)
	}
}

func TestSlower(t *testing.T) {
	if slower([]float64{10, 11, 10}, []float64{10, 11, 10}) || slower([]float64{20}, []float64{1, 1}) {
		t.Error("equal samples, or a single value, called slower")
	}
	if !slower([]float64{20, 21, 20}, []float64{10, 11, 10}) {
		t.Error("twice as long, and not called slower")
	}
}

func TestCurve(t *testing.T) {
	var c curve
	for i := range int64(4 * maxPoints) {
		c.add(10*i, float64(i))
	}
	if c.len() > maxPoints || c.len() < maxPoints/4 {
		t.Errorf("%d points of %d kept", c.len(), 4*maxPoints)
	}
	if got := c.when(12345); math.Abs(got-1234.5) > 0.01 {
		t.Errorf("value at 12345 is %v, want 1234.5", got)
	}
	if got := c.rise(1000, 2000); math.Abs(got-100) > 0.01 {
		t.Errorf("rise %v, want 100", got)
	}
	if (*curve)(nil).len() != 0 || (&curve{}).rise(0, 1) != 0 {
		t.Error("an empty curve has values")
	}
}

func TestOverlap(t *testing.T) {
	all := []Window{{0, 10}, {20, 30}, {40, 50}}
	for _, c := range []struct{ begin, end, want int64 }{
		{0, 50, 30}, {5, 25, 10}, {10, 20, 0}, {45, 99, 5}, {-5, 0, 0}, {30, 40, 0}, {21, 22, 1},
	} {
		if got := overlap(all, c.begin, c.end); got != float64(c.want) {
			t.Errorf("overlap with %d to %d is %v, want %d", c.begin, c.end, got, c.want)
		}
	}
}
