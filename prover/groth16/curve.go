package groth16

import (
	"unsafe"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// field is what the generic point arithmetic needs of a coordinate: fp.Element for G1, E2 for G2.
type field[T any] interface {
	*T
	Add(a, b *T) *T
	Sub(a, b *T) *T
	Mul(a, b *T) *T
	Square(a *T) *T
	Neg(a *T) *T
	Inverse(a *T) *T
	SetOne() *T
	IsZero() bool
	Equal(a *T) bool
}

// point is an affine point of y² = x³ + b, laid out like gnark-crypto's G1Affine and G2Affine. (0, 0), which is on neither
// curve, stands for infinity, as it does there.
type point[T any] struct{ X, Y T }

const (
	g1Bytes = 96
	g2Bytes = 192
)

// The layouts are the same, or this does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(curve.G1Affine{})-unsafe.Sizeof(point[fp.Element]{})]
	_ = [1]struct{}{}[unsafe.Sizeof(curve.G2Affine{})-unsafe.Sizeof(point[curve.E2]{})]
	_ = [1]struct{}{}[unsafe.Sizeof(curve.G1Affine{})-g1Bytes]
	_ = [1]struct{}{}[unsafe.Sizeof(curve.G2Affine{})-g2Bytes]
	_ = curve.G1Affine(point[fp.Element]{})
	_ = curve.G2Affine(point[curve.E2]{})
)

func g1Points(p []curve.G1Affine) []point[fp.Element] {
	return unsafe.Slice((*point[fp.Element])(unsafe.Pointer(unsafe.SliceData(p))), len(p))
}

func g2Points(p []curve.G2Affine) []point[curve.E2] {
	return unsafe.Slice((*point[curve.E2])(unsafe.Pointer(unsafe.SliceData(p))), len(p))
}

func isInfinity[T any, P field[T]](p *point[T]) bool {
	return P(&p.X).IsZero() && P(&p.Y).IsZero()
}

// double sets p to 2p. It inverts: for the rare case only.
func double[T any, P field[T]](p *point[T]) {
	if isInfinity[T, P](p) || P(&p.Y).IsZero() {
		*p = point[T]{}
		return
	}
	var slope, den, x3 T
	P(&slope).Square(&p.X)
	P(&x3).Add(&slope, &slope)
	P(&slope).Add(&slope, &x3)
	P(&den).Add(&p.Y, &p.Y)
	P(&den).Inverse(&den)
	P(&slope).Mul(&slope, &den)
	addAlong[T, P](p, &p.X, &slope)
}

// addAlong sets p to the third point, mirrored, on the line through p and a point at x2 with the given slope.
func addAlong[T any, P field[T]](p *point[T], x2, slope *T) {
	var x3, y3 T
	P(&x3).Square(slope)
	P(&x3).Sub(&x3, &p.X)
	P(&x3).Sub(&x3, x2)
	P(&y3).Sub(&p.X, &x3)
	P(&y3).Mul(&y3, slope)
	P(&p.Y).Sub(&y3, &p.Y)
	p.X = x3
}

// addBatch adds terms[i] to sums[i] for every i, with one inversion for all of them (Montgomery's trick: 6 multiplications
// an addition). partial is scratch of the same length. Every case is handled: infinity on either side, P+P and P-P.
func addBatch[T any, P field[T]](sums, terms []point[T], partial []T) {
	var product, den T
	P(&product).SetOne()
	for i := range sums {
		partial[i] = product
		if !simpleAdd[T, P](&sums[i], &terms[i]) {
			terms[i] = point[T]{} // done: the second pass skips it
			continue
		}
		P(&den).Sub(&terms[i].X, &sums[i].X)
		P(&product).Mul(&product, &den)
	}
	P(&product).Inverse(&product)
	for i := len(sums) - 1; i >= 0; i-- {
		if isInfinity[T, P](&terms[i]) {
			continue
		}
		var slope, inverse T
		P(&den).Sub(&terms[i].X, &sums[i].X)
		P(&inverse).Mul(&product, &partial[i])
		P(&product).Mul(&product, &den)
		P(&slope).Sub(&terms[i].Y, &sums[i].Y)
		P(&slope).Mul(&slope, &inverse)
		addAlong[T, P](&sums[i], &terms[i].X, &slope)
	}
}

// simpleAdd says whether the two points have different abscissas; if not, it adds them itself.
func simpleAdd[T any, P field[T]](sum, term *point[T]) bool {
	switch {
	case isInfinity[T, P](term):
	case isInfinity[T, P](sum):
		*sum = *term
	case !P(&sum.X).Equal(&term.X):
		return true
	case P(&sum.Y).Equal(&term.Y):
		double[T, P](sum)
	default:
		*sum = point[T]{}
	}
	return false
}
