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

// point is an affine point of y² = x³ + b, laid out like gnark-crypto's G1Affine and G2Affine. (0,
// 0), which is on neither curve, stands for infinity, as it does there.
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

// adder adds points. It holds what its methods compute with: locals of a type parameter would be
// allocated on every call.
type adder[T any, P field[T]] struct {
	product, den, slope, inverse, x3, y3 T
	partial                              []T
}

// double sets p to 2p. It inverts: for the rare case only.
func (a *adder[T, P]) double(p *point[T]) {
	if isInfinity[T, P](p) || P(&p.Y).IsZero() {
		*p = point[T]{}
		return
	}
	P(&a.slope).Square(&p.X)
	P(&a.x3).Add(&a.slope, &a.slope)
	P(&a.slope).Add(&a.slope, &a.x3)
	P(&a.den).Add(&p.Y, &p.Y)
	P(&a.den).Inverse(&a.den)
	P(&a.slope).Mul(&a.slope, &a.den)
	a.addAlong(p, &p.X)
}

// addAlong sets p to the third point, mirrored, on the line of the present slope through p and a
// point at x2.
func (a *adder[T, P]) addAlong(p *point[T], x2 *T) {
	P(&a.x3).Square(&a.slope)
	P(&a.x3).Sub(&a.x3, &p.X)
	P(&a.x3).Sub(&a.x3, x2)
	P(&a.y3).Sub(&p.X, &a.x3)
	P(&a.y3).Mul(&a.y3, &a.slope)
	P(&p.Y).Sub(&a.y3, &p.Y)
	p.X = a.x3
}

// batch adds terms[i] to sums[i] for every i, with one inversion for all of them (Montgomery's
// trick: 6 multiplications an addition). It spoils terms. Every case is handled: infinity on either
// side, P+P and P-P.
func (a *adder[T, P]) batch(sums, terms []point[T]) {
	if len(a.partial) < len(sums) {
		a.partial = make([]T, len(sums))
	}
	P(&a.product).SetOne()
	for i := range sums {
		if !a.distinct(&sums[i], &terms[i]) {
			terms[i] = point[T]{} // done: the second pass skips it
			continue
		}
		a.partial[i] = a.product
		P(&a.den).Sub(&terms[i].X, &sums[i].X)
		P(&a.product).Mul(&a.product, &a.den)
	}
	P(&a.product).Inverse(&a.product)
	for i := len(sums) - 1; i >= 0; i-- {
		if isInfinity[T, P](&terms[i]) {
			continue
		}
		P(&a.den).Sub(&terms[i].X, &sums[i].X)
		P(&a.inverse).Mul(&a.product, &a.partial[i])
		P(&a.product).Mul(&a.product, &a.den)
		P(&a.slope).Sub(&terms[i].Y, &sums[i].Y)
		P(&a.slope).Mul(&a.slope, &a.inverse)
		a.addAlong(&sums[i], &terms[i].X)
	}
}

// distinct says whether the two points have different abscissas; if not, it adds them itself.
func (a *adder[T, P]) distinct(sum, term *point[T]) bool {
	switch {
	case isInfinity[T, P](term):
	case isInfinity[T, P](sum):
		*sum = *term
	case !P(&sum.X).Equal(&term.X):
		return true
	case P(&sum.Y).Equal(&term.Y):
		doubler := adder[T, P]{} // the batch is using the values of this one
		doubler.double(sum)
	default:
		*sum = point[T]{}
	}
	return false
}
