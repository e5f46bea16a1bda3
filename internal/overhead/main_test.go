package main

import "testing"

func TestUpperRank(t *testing.T) {
	// From tables of the sign test: n = 20, one-sided 95 %: the 15th smallest value (rank 14) bounds the median,
	// since P(Bin(20, 1/2) <= 13) = 0.942 and P(<= 14) = 0.979.
	for _, c := range []struct{ n, want int }{{20, 14}, {24, 16}, {40, 25}} {
		got := upperRank(c.n, 0.95)
		if got != c.want {
			t.Errorf("upperRank(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	if m := median([]float64{1, 2, 4, 8}); m != 3 {
		t.Errorf("median of an even sample = %v, want 3", m)
	}
	if m := median([]float64{1, 2, 4}); m != 2 {
		t.Errorf("median of an odd sample = %v, want 2", m)
	}
}
