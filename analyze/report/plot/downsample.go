package plot

import (
	"math"
	"slices"
)

// Downsample keeps at most four points of each of so many equal stretches of x: the first, the
// lowest, the highest and the last, in their order, so that a peak of one point survives. A gap
// (Y not known) inside a stretch is kept as one point. Few points come back as they are.
func Downsample(points []Point, buckets int) []Point {
	if buckets <= 0 || len(points) <= 4*buckets {
		return points
	}
	from, to := points[0].X, points[len(points)-1].X
	width := (to - from) / float64(buckets)
	if width <= 0 {
		return pick(nil, points)
	}
	out := make([]Point, 0, 4*buckets)
	begin, bucket := 0, 0
	for i, p := range points {
		b := min(int((p.X-from)/width), buckets-1)
		if b != bucket {
			out = pick(out, points[begin:i])
			begin, bucket = i, b
		}
	}
	return pick(out, points[begin:])
}

// pick appends what one stretch keeps.
func pick(out, stretch []Point) []Point {
	if len(stretch) == 0 {
		return out
	}
	keep := []int{0, len(stretch) - 1}
	low, high, gap := -1, -1, -1
	for i, p := range stretch {
		switch {
		case math.IsNaN(p.Y):
			gap = i
		default:
			if low < 0 || bottom(p) < bottom(stretch[low]) {
				low = i
			}
			if high < 0 || top(p) > top(stretch[high]) {
				high = i
			}
		}
	}
	for _, i := range []int{low, high, gap} {
		if i >= 0 {
			keep = append(keep, i)
		}
	}
	slices.Sort(keep)
	for _, i := range slices.Compact(keep) {
		out = append(out, stretch[i])
	}
	return out
}

func bottom(p Point) float64 {
	if p.hasBand() {
		return min(p.Low, p.Y)
	}
	return p.Y
}

func top(p Point) float64 {
	if p.hasBand() {
		return max(p.High, p.Y)
	}
	return p.Y
}
