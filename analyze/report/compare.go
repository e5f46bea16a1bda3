package report

import (
	"io"

	"highwater/internal/units"
)

// Compared is one figure as predicted and as then measured. Nil is not known.
type Compared struct {
	Name                 string // ends in its unit: peak_rss_bytes
	Predicted, Low, High *float64
	Measured             *float64
	ErrorRatio           *float64 // predicted over measured, minus 1
	AllowedRatio         *float64 // the bar it is held to, null where there is none
	Within               bool     // of the bar
}

// Compare writes predictions beside measurements.
func Compare(w io.Writer, title string, rows []Compared, s Style) error {
	p := &printer{w: w, style: s}
	g := Grid{
		Title:  title,
		Header: []string{"", "predicted", "low", "high", "measured", "error", "allowed", ""},
	}
	for _, r := range rows {
		row := []string{
			Label(r.Name), Value(r.Name, r.Predicted), Value(r.Name, r.Low), Value(r.Name, r.High),
			Value(r.Name, r.Measured), Unknown, "", "",
		}
		if r.ErrorRatio != nil {
			row[5] = units.SignedPercent(*r.ErrorRatio)
		}
		if r.AllowedRatio != nil {
			row[6], row[7] = units.Percent(*r.AllowedRatio), "outside"
			if r.Within {
				row[7] = "within"
			}
		}
		g.Rows = append(g.Rows, row)
	}
	p.grid(g)
	return p.err
}
