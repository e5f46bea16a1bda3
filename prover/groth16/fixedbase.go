package groth16

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/prover/hostmem"
	"highwater/tracer"
)

const (
	scalarBits = 256 // one more than a scalar has, for the carry of the signed digits
	// blockScalars is how many products a worker computes at a time: enough to make the shared
	// inversion cheap, few enough to stay in the cache.
	blockScalars = 512
	maxWindow    = 16
)

// classSetup is the class of set-up's own memory: tables and scalars.
const classSetup = "setup_scratch"

// fixedBase computes many multiples of one point from tables: for each window of c bits of the
// scalar the multiples 1..2^(c-1) of 2^(c·window)·base, so that a product is one addition a window
// (digits are signed). Doubling, which is 6 of 7 operations of a windowed multiplication, is paid
// once, in the tables.
type fixedBase[T any, P field[T]] struct {
	window  int // c
	windows int
	table   []point[T] // windows rows of 2^(c-1)
	region  *hostmem.Region
}

// newFixedBase builds tables that suit n products.
func newFixedBase[T any, P field[T]](env Env, base point[T], n, threads int) (*fixedBase[T, P], error) {
	f := &fixedBase[T, P]{window: bestWindow(n)}
	f.windows = (scalarBits + f.window - 1) / f.window
	entries := f.windows * f.row()
	region, err := env.Mem.Alloc(classSetup, int64(entries)*int64(unsafe.Sizeof(base)), tracer.NoOwner)
	if err != nil {
		return nil, fmt.Errorf("map fixed-base tables: %w", err)
	}
	f.region, f.table = region, hostmem.Of[point[T]](region, entries)
	var add adder[T, P]
	for w := range f.windows {
		f.table[w*f.row()] = base
		for range f.window {
			add.double(&base)
		}
	}
	parallel(threads, f.windows, func(w int) { fillRow[T, P](f.table[w*f.row() : (w+1)*f.row()]) })
	region.Fill(region.Capacity())
	return f, nil
}

// row is the number of multiples a window has.
func (f *fixedBase[T, P]) row() int { return 1 << (f.window - 1) }

// bestWindow minimises the additions of tables and products together.
func bestWindow(n int) int {
	best, least := 0, 0
	for c := 4; c <= maxWindow; c++ {
		cost := (scalarBits + c - 1) / c * (1<<(c-1) + n)
		if best == 0 || cost < least {
			best, least = c, cost
		}
	}
	return best
}

// fillRow completes the multiples 1, 2, 3 … of row[0], by doubling the part that is done: i·P + h·P
// for i up to h.
func fillRow[T any, P field[T]](row []point[T]) {
	var add adder[T, P]
	terms := make([]point[T], blockScalars)
	for have := 1; have < len(row); have *= 2 {
		step := row[have-1]
		for begin := 0; begin < have; begin += blockScalars {
			n := min(blockScalars, have-begin)
			sums := row[have+begin : have+begin+n]
			copy(sums, row[begin:begin+n])
			for i := range n {
				terms[i] = step
			}
			add.batch(sums, terms[:n])
		}
	}
}

// multiples sets out[i] to scalar(i)·base. progress is called with the number of products of each
// block.
func (f *fixedBase[T, P]) multiples(
	ctx context.Context, out []point[T], scalar func(i int) *fr.Element, opts blockOptions,
) error {
	blocks := (len(out) + blockScalars - 1) / blockScalars
	scratch := sync.Pool{New: func() any { return newBlock[T, P](f) }}
	parallel(opts.threads, blocks, func(b int) {
		if ctx.Err() != nil {
			return
		}
		block := scratch.Get().(*block[T, P])
		begin, end := b*blockScalars, min((b+1)*blockScalars, len(out))
		block.multiples(out[begin:end], func(i int) *fr.Element { return scalar(begin + i) })
		scratch.Put(block)
		opts.progress(end - begin)
	})
	return context.Cause(ctx)
}

func (f *fixedBase[T, P]) free() error {
	f.table = nil
	return f.region.Free()
}

// blockOptions say how blocks are worked on.
type blockOptions struct {
	threads  int
	progress func(n int) // by several goroutines
}

// block is a worker's scratch.
type block[T any, P field[T]] struct {
	base   *fixedBase[T, P]
	digits []int32 // windows rows of blockScalars
	terms  []point[T]
	add    adder[T, P]
}

func newBlock[T any, P field[T]](f *fixedBase[T, P]) *block[T, P] {
	return &block[T, P]{
		base: f, digits: make([]int32, f.windows*blockScalars),
		terms: make([]point[T], blockScalars),
	}
}

func (b *block[T, P]) multiples(out []point[T], scalar func(i int) *fr.Element) {
	for i := range out {
		out[i] = point[T]{}
		signedDigits(scalar(i).Bits(), b.base.window, b.digits[i:])
	}
	for w := range b.base.windows {
		row := b.base.table[w*b.base.row() : (w+1)*b.base.row()]
		digits := b.digits[w*blockScalars:]
		for i := range out {
			pick[T, P](&b.terms[i], row, digits[i])
		}
		b.add.batch(out, b.terms[:len(out)])
	}
}

// pick sets p to digit times the row's point.
func pick[T any, P field[T]](p *point[T], row []point[T], digit int32) {
	switch {
	case digit > 0:
		*p = row[digit-1]
	case digit < 0:
		*p = row[-digit-1]
		P(&p.Y).Neg(&p.Y)
	default:
		*p = point[T]{}
	}
}

// signedDigits writes the digits of a scalar, each in [-2^(c-1), 2^(c-1)], lowest first,
// blockScalars apart.
func signedDigits(scalar [4]uint64, c int, digits []int32) {
	carry := int32(0)
	for w := 0; w*c < scalarBits; w++ {
		d := int32(window(&scalar, w*c, c)) + carry
		carry = 0
		if d > 1<<(c-1) {
			d -= 1 << c
			carry = 1
		}
		digits[w*blockScalars] = d
	}
}

// window is c bits of a scalar from bit on.
func window(scalar *[4]uint64, bit, c int) uint64 {
	word, shift := bit/64, bit%64
	v := scalar[word] >> shift
	if shift+c > 64 && word < 3 {
		v |= scalar[word+1] << (64 - shift)
	}
	return v & (1<<c - 1)
}

// parallel runs f(0), f(1) … f(n-1) on as many goroutines as threads says, in no order.
func parallel(threads, n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(threads, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// bitReverse reverses the lowest lg bits of i.
func bitReverse(i, lg int) int {
	return int(bits.Reverse64(uint64(i)) >> (64 - lg))
}
