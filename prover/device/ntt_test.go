//go:build cgo && linux

package device

import (
	"math/big"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

// transform is what gnark-crypto makes of v, natural order in and out.
func transform(domain *fft.Domain, v []fr.Element, flags int) []fr.Element {
	out := slices.Clone(v)
	if len(out) == 1 {
		return out
	}
	var options []fft.Option
	if flags&NTTCoset != 0 {
		options = append(options, fft.OnCoset())
	}
	if flags&NTTInverse != 0 {
		domain.FFTInverse(out, fft.DIF, options...)
	} else {
		domain.FFT(out, fft.DIF, options...)
	}
	fft.BitReverse(out)
	return out
}

// TestNTT compares every kind of transform at every size, and that the inverse undoes it.
func TestNTT(t *testing.T) {
	r := testRand(t)
	c := newContext(t, Config{})
	for lg := range maxLog(10) + 1 {
		domain := fft.NewDomain(1 << lg)
		in := randomFrs(r, 1<<lg)
		reversed := slices.Clone(in)
		fft.BitReverse(reversed)
		for flags := range 4 {
			want := transform(domain, in, flags)
			wantReversed := slices.Clone(want)
			fft.BitReverse(wantReversed)
			for order, x := range map[int]struct{ in, want []fr.Element }{
				OrderNN: {in, want}, OrderNR: {in, wantReversed},
				OrderRN: {reversed, want}, OrderRR: {reversed, wantReversed},
			} {
				got := slices.Clone(x.in)
				if err := NTT(c, got, order, flags); err != nil {
					t.Fatalf("2^%d order %d flags %d: %v", lg, order, flags, err)
				}
				if !slices.Equal(got, x.want) {
					t.Fatalf("2^%d order %d flags %d is wrong", lg, order, flags)
				}
			}
		}
		back := slices.Clone(in)
		for _, flags := range []int{NTTCoset, NTTCoset | NTTInverse} {
			if err := NTT(c, back, OrderNN, flags); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(back, in) {
			t.Fatalf("2^%d: the inverse does not undo the transform", lg)
		}
		t.Logf("2^%d: 16 transforms are gnark-crypto's", lg)
	}
	if err := NTT(c, make([]fr.Element, 3), OrderNN, 0); err == nil {
		t.Error("three elements were transformed")
	}
}

// TestQuotient compares the pointwise step of h.
func TestQuotient(t *testing.T) {
	r := testRand(t)
	c := newContext(t, Config{})
	for _, lg := range []int{1, 5, maxLog(10)} {
		n := 1 << lg
		a, b, d := randomFrs(r, n), randomFrs(r, n), randomFrs(r, n)
		var z fr.Element
		z.Exp(fr.NewElement(7), big.NewInt(int64(n)))
		one := fr.One()
		z.Sub(&z, &one).Inverse(&z)
		want := make([]fr.Element, n)
		for i := range want {
			want[i].Mul(&a[i], &b[i]).Sub(&want[i], &d[i]).Mul(&want[i], &z)
		}
		if err := Quotient(c, a, b, d); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, want) {
			t.Errorf("2^%d: wrong", lg)
		}
	}
}
