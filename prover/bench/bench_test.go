package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// TestCases: what the options ask for, in order, under names that benchstat can group by.
func TestCases(t *testing.T) {
	o := Options{Sizes: []int{4}, Profiles: []string{Uniform, Label}, Groups: []string{G1, G2},
		NTT: true, MSM: true, Upload: true, Sppark: true}
	want := []string{
		"NTT/log_size=4", "NTT/by=sppark/log_size=4", "Upload/log_size=4",
		"MSM/group=g1/profile=uniform/log_size=4", "MSM/group=g1/profile=label/log_size=4",
		"MSM/by=sppark/group=g1/profile=uniform/log_size=4",
		"MSM/group=g2/profile=uniform/log_size=4", "MSM/group=g2/profile=label/log_size=4",
	}
	cases := o.Cases()
	if len(cases) != len(want) {
		t.Fatalf("%d cases, want %d", len(cases), len(want))
	}
	for i, c := range cases {
		if c.Name() != want[i] {
			t.Errorf("case %d is %s, want %s", i, c.Name(), want[i])
		}
	}
}

// TestCPU times a little on the CPU, and gives up when it is told to.
func TestCPU(t *testing.T) {
	o := Options{Sizes: []int{5}, Profiles: Profiles(), Groups: []string{G1, G2}, NTT: true, MSM: true, Count: 3}
	n := 0
	err := Run(t.Context(), CPU{}, o, func(r Result) error {
		n++
		if len(r.Nanos) != 3 || r.Median() < 0 {
			t.Errorf("%s: times %v", r.Name(), r.Nanos)
		}
		return nil
	})
	if err != nil || n != 7 {
		t.Errorf("%d results, %v, want 7", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, CPU{}, o, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the cancel", err)
	}
	o.Upload = true
	if err := Run(t.Context(), CPU{}, o, func(Result) error { return nil }); err == nil {
		t.Error("the CPU uploaded")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []int64
		want int64
	}{{nil, 0}, {[]int64{5}, 5}, {[]int64{9, 1, 5}, 5}, {[]int64{4, 1, 9, 6}, 5}} {
		if got := (&Result{Nanos: c.v}).Median(); got != c.want {
			t.Errorf("median of %v is %d, want %d", c.v, got, c.want)
		}
	}
}

// TestInputs: scalars have the shares that their profile says, points are different and on the curve.
func TestInputs(t *testing.T) {
	counts := map[fr.Element]int{}
	v := Scalars(Label, 100_000, 1)
	for _, e := range v {
		counts[e]++
	}
	var zero, one fr.Element
	one.SetOne()
	for e, want := range map[fr.Element]int{zero: 68_400, one: 17_600} {
		if got := counts[e]; got < want-700 || got > want+700 { // five standard deviations; the seed is fixed
			t.Errorf("%v occurs %d times, want about %d", e, got, want)
		}
	}
	if v := Scalars(OneValue, 9, 1); v[0] != v[8] || v[0] == zero {
		t.Error("one value is not one value")
	}
	seen := map[any]bool{}
	for i, p := range pointsG1(pointBlock + 100) {
		if i%97 == 0 && !p.IsOnCurve() {
			t.Fatalf("point %d is not on the curve", i)
		}
		seen[p] = true
	}
	for i, p := range pointsG2(300) {
		if i%97 == 0 && !p.IsOnCurve() {
			t.Fatalf("point %d is not on the curve", i)
		}
		seen[p] = true
	}
	if len(seen) != pointBlock+400 {
		t.Errorf("%d different points, want %d", len(seen), pointBlock+400)
	}
}
