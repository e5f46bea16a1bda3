package groth16

import (
	"errors"
	"os"

	"highwater/prover/hostmem"
)

// firstGrownBytes is where a vector that grows by doubling starts.
const firstGrownBytes = 64 << 10

// pages rounds up to whole pages.
func pages(n int64) int64 {
	page := int64(os.Getpagesize())
	return (n + page - 1) / page * page
}

// doubled is the capacity that doubling from the first size reaches for need bytes. No vector
// starts above limit.
func doubled(limit, need int64) int64 {
	capacity := min(int64(firstGrownBytes), limit)
	for capacity < need {
		capacity *= 2
	}
	return capacity
}

func capacityOf(regions []*hostmem.Region) int64 {
	var n int64
	for _, r := range regions {
		n += r.Capacity()
	}
	return n
}

// freeAll frees those that are not nil.
func freeAll(regions ...*hostmem.Region) error {
	var errs []error
	for _, r := range regions {
		if r != nil {
			errs = append(errs, r.Free())
		}
	}
	return errors.Join(errs...)
}
