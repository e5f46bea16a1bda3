//go:build cgo && linux

package device

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// At full size an MSM by gnark-crypto takes seconds, and hundreds are to be checked. Here the points
// have known logarithms: gnark-crypto makes point i from k_i, and the sum of s_i·P_i is then the
// multiple of the generator by the sum of s_i·k_i, one multiplication of gnark-crypto's. Nothing of
// the device is trusted, points included.

// group is what the test needs of gnark-crypto's G1 or G2.
type group[P comparable] struct {
	number    int
	multiples func(logs []fr.Element) []P // of the generator
	sums      func(a, b []P, n int) []P   // n points a[i%len(a)] + b[i/len(a)]
}

func groupG1() group[curve.G1Affine] {
	_, _, g, _ := curve.Generators()
	return group[curve.G1Affine]{number: G1,
		multiples: func(logs []fr.Element) []curve.G1Affine {
			return curve.BatchScalarMultiplicationG1(&g, logs)
		},
		sums: func(a, b []curve.G1Affine, n int) []curve.G1Affine {
			out := make([]curve.G1Affine, n)
			inRows(n, len(a), func(row, from, to int) {
				sums := make([]curve.G1Jac, to-from)
				for i := range sums {
					sums[i].FromAffine(&b[row])
					sums[i].AddMixed(&a[i])
				}
				copy(out[from:to], curve.BatchJacobianToAffineG1(sums))
			})
			return out
		}}
}

func groupG2() group[curve.G2Affine] {
	_, _, _, g := curve.Generators()
	return group[curve.G2Affine]{number: G2,
		multiples: func(logs []fr.Element) []curve.G2Affine {
			return curve.BatchScalarMultiplicationG2(&g, logs)
		},
		sums: func(a, b []curve.G2Affine, n int) []curve.G2Affine {
			out := make([]curve.G2Affine, n)
			inRows(n, len(a), func(row, from, to int) {
				for i := from; i < to; i++ {
					var sum curve.G2Jac
					sum.FromAffine(&b[row])
					out[i].FromJacobian(sum.AddMixed(&a[i-from]))
				}
			})
			return out
		}}
}

// inRows calls f for each row of a table of n cells, several at once.
func inRows(n, width int, f func(row, from, to int)) {
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for row := range (n + width - 1) / width {
		free <- struct{}{}
		wait.Go(func() {
			f(row, row*width, min(n, (row+1)*width))
			<-free
		})
	}
	wait.Wait()
}

// points are n points of a profile, with their logarithms.
func (g group[P]) points(r *rand.Rand, profile string, n int) ([]P, []fr.Element) {
	logs := make([]fr.Element, n)
	if profile != "random" {
		logProfiles[profile](r, logs)
		return g.few(logs), logs
	}
	width := 1 << ((bits.Len(uint(n-1)) + 1) / 2)
	a, b := randomFrs(r, width), randomFrs(r, (n+width-1)/width)
	for i := range logs {
		logs[i].Add(&a[i%width], &b[i/width])
	}
	return g.sums(g.multiples(a), g.multiples(b), n), logs
}

// few are the points of logarithms of which few differ.
func (g group[P]) few(logs []fr.Element) []P {
	index := map[fr.Element]int{}
	var different []fr.Element
	for _, x := range logs {
		if _, ok := index[x]; !ok {
			index[x] = len(different)
			different = append(different, x)
		}
	}
	multiples, out := g.multiples(different), make([]P, len(logs))
	for i, x := range logs {
		out[i] = multiples[index[x]]
	}
	return out
}

// everySize are the sizes from 1 to n: powers of two, and one between each two.
func everySize(n int) (list []int) {
	for size := 1; size <= n; size *= 2 {
		list = append(list, size)
		if size > 2 {
			list = append(list, size-size/3)
		}
	}
	return list
}

// TestMSMAtScale: every profile of points with every profile of scalars at the largest size and some
// smaller ones, dense and label-like scalars at every size.
func TestMSMAtScale(t *testing.T) {
	n := 1 << maxLog(9)
	t.Run("G1", func(t *testing.T) { checkAtScale(t, groupG1(), n) })
	if !large() {
		n /= 4
	}
	t.Run("G2", func(t *testing.T) { checkAtScale(t, groupG2(), n) })
}

func checkAtScale[P comparable](t *testing.T, g group[P], n int) {
	r := testRand(t)
	c := newContext(t, Config{})
	scalars := map[string][]fr.Element{}
	for _, name := range slices.Sorted(maps.Keys(scalarProfiles)) {
		scalars[name] = make([]fr.Element, n)
		scalarProfiles[name](r, scalars[name])
	}
	some := slices.DeleteFunc([]int{1 << 14, 1 << 18, n - n/3, n}, func(size int) bool { return size > n })
	for _, profile := range slices.Sorted(maps.Keys(logProfiles)) {
		points, logs := g.points(r, profile, n)
		for _, name := range slices.Sorted(maps.Keys(scalars)) {
			list := some
			if profile == "random" && (name == "dense" || name == "label") {
				list = everySize(n)
			}
			for _, size := range list {
				what := fmt.Sprintf("%s points, %s scalars", profile, name)
				checkByLogs(t, c, g, points[:size], logs[:size], scalars[name][:size], what)
			}
			t.Logf("%s points, %s scalars: %d sums of up to %d", profile, name, len(list), n)
		}
	}
}

// checkByLogs compares an MSM with the multiple of the generator that the logarithms give.
func checkByLogs[P comparable](t *testing.T, c *Context, g group[P], points []P, logs, scalars []fr.Element,
	what string,
) {
	t.Helper()
	want := g.multiples([]fr.Element{innerProduct(logs, scalars)})[0]
	got, stats, err := MSM(c, g.number, points, scalars, MSMOptions{})
	if err != nil {
		t.Fatalf("G%d, %d points, %s: %v", g.number, len(points), what, err)
	}
	if got != want {
		t.Fatalf("G%d, %d points, %s, %+v: %v, want %v", g.number, len(points), what, stats, got, want)
	}
}

// innerProduct is the sum of a[i]·b[i].
func innerProduct(a, b []fr.Element) (sum fr.Element) {
	parts := make([]fr.Element, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for p := range parts {
		lo, hi := len(a)*p/len(parts), len(a)*(p+1)/len(parts)
		wait.Go(func() {
			var product fr.Element
			for i := lo; i < hi; i++ {
				parts[p].Add(&parts[p], product.Mul(&a[i], &b[i]))
			}
		})
	}
	wait.Wait()
	for i := range parts {
		sum.Add(&sum, &parts[i])
	}
	return sum
}
