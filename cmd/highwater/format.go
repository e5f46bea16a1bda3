package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// unknown is what text shows for a figure that was not measured.
const unknown = "unknown"

// bytesText is a byte count in the unit that suits it.
func bytesText(n *int64) string {
	if n == nil {
		return unknown
	}
	return formatBytes(*n)
}

func formatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for (f >= 1024 || f <= -1024) && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.4g %s", f, units[i])
}

// nanosText is a duration with three significant digits or so.
func nanosText(n *int64) string {
	if n == nil {
		return unknown
	}
	d := time.Duration(*n)
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return d.String()
}

func ratioText(r *float64) string {
	if r == nil {
		return unknown
	}
	return fmt.Sprintf("%.2f", *r)
}

func percentText(r *float64) string {
	if r == nil {
		return unknown
	}
	return fmt.Sprintf("%+.1f %%", 100**r)
}

// tabbed aligns columns that are set apart by tabs. Flush it at the end.
func tabbed(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }
