package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"highwater/analyze/memory"
)

// SeriesCSV writes down-sampled series as rows of series, begin_ns, end_ns, min, max, last; the
// unit of the values is the end of the series' name, bytes for class/… and place/…. Stretches in
// which a sampled figure was not sampled are left out.
func SeriesCSV(w io.Writer, series []*memory.Series) error {
	rows := [][]string{{"series", "begin_ns", "end_ns", "min", "max", "last"}}
	for _, s := range series {
		for i, b := range s.Buckets {
			if !b.Known {
				continue
			}
			begin := s.BeginNS + int64(i)*s.BucketNS
			rows = append(rows, []string{
				s.Name, number(begin), number(begin + s.BucketNS),
				number(b.Min), number(b.Max), number(b.Last),
			})
		}
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("write series: %w", err)
	}
	return nil
}

// PeakCSV writes what held the memory at the peak as rows of class, place, bytes, buffers.
func PeakCSV(w io.Writer, a *memory.Attribution) error {
	rows := make([][]string, 1, 1+len(a.ClassByPlace))
	rows[0] = []string{"class", "place", "bytes", "buffers"}
	for _, x := range a.ClassByPlace {
		rows = append(rows, []string{x.Class, x.Place, number(x.Bytes), number(x.Buffers)})
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("write peak: %w", err)
	}
	return nil
}

func number(v int64) string { return strconv.FormatInt(v, 10) }
