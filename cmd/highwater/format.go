package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"highwater/internal/units"
)

// unknown is what text shows for a figure that was not measured.
const unknown = "unknown"

func bytesText(n *int64) string {
	if n == nil {
		return unknown
	}
	return units.Bytes(*n)
}

func nanosText(n *int64) string {
	if n == nil {
		return unknown
	}
	return units.Nanos(*n)
}

func ratioText(r *float64) string {
	if r == nil {
		return unknown
	}
	return fmt.Sprintf("%.2f", *r)
}

// shareText is a ratio as a share: 12.3 %.
func shareText(r *float64) string {
	if r == nil {
		return unknown
	}
	return units.Percent(*r)
}

// errorText is a ratio as a deviation: +1.2 %.
func errorText(r *float64) string {
	if r == nil {
		return unknown
	}
	return units.SignedPercent(*r)
}

// rangeText joins two bounds; one word where neither is known.
func rangeText(low, high string) string {
	if low == unknown && high == unknown {
		return unknown
	}
	return low + " to " + high
}

// tabbed aligns columns that are set apart by tabs. Flush it at the end.
func tabbed(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }
