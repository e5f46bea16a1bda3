package plot

import (
	_ "embed"
	"io"
)

//go:embed assets/uPlot.iife.min.js
var uplotJS string

//go:embed assets/uPlot.min.css
var uplotCSS string

//go:embed assets/chart.js
var chartJS string

//go:embed assets/chart.css
var chartCSS string

//go:embed assets/page.html
var pageHTML string

// HTML writes the chart as one page that needs nothing else: no network, no other file.
func (c Chart) HTML(w io.Writer) error { return Page(w, c.Title, nil, c) }
