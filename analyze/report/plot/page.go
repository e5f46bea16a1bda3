package plot

import (
	"fmt"
	"html/template"
	"io"
)

// Page writes several charts, one below the other, as one page that needs nothing else. notes are
// sentences under the title.
func Page(w io.Writer, title string, notes []string, charts ...Chart) error {
	page := pageData{
		Title: title, Notes: notes,
		CSS: template.CSS(uplotCSS + chartCSS),
		JS:  template.JS(uplotJS + "\n" + chartJS),
	}
	for _, c := range charts {
		p, err := c.prepared()
		if err != nil {
			return err
		}
		page.Charts = append(page.Charts, p.data())
	}
	if err := pageTemplate.Execute(w, page); err != nil {
		return fmt.Errorf("write chart page %q: %w", title, err)
	}
	return nil
}

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// pageData is what page.html shows.
type pageData struct {
	Title  string
	Notes  []string
	CSS    template.CSS
	JS     template.JS
	Charts []chartData
}

// chartData is a chart as chart.js reads it: not a number is null.
type chartData struct {
	Title  string       `json:"title"`
	Notes  []string     `json:"notes"`
	X      axisData     `json:"x"`
	Y      axisData     `json:"y"`
	Series []seriesData `json:"series"`
	Limits []Limit      `json:"limits"`
	Marks  []Mark       `json:"marks"`
}

type axisData struct {
	Label      string   `json:"label"`
	Unit       Unit     `json:"unit"`
	Categories []string `json:"categories"`
	FromZero   bool     `json:"fromZero"`
}

type seriesData struct {
	Name   string     `json:"name"`
	Dots   bool       `json:"dots"`
	Dashed bool       `json:"dashed"`
	Band   bool       `json:"band"`
	X      []float64  `json:"x"`
	Y      []*float64 `json:"y"`
	Low    []*float64 `json:"low"`
	High   []*float64 `json:"high"`
	Notes  []string   `json:"notes"`
}

func (c Chart) data() chartData {
	d := chartData{
		Title: c.Title, Notes: c.Notes, X: axisData(c.X), Y: axisData(c.Y),
		Limits: c.Limits, Marks: c.Marks,
	}
	for _, s := range c.Series {
		d.Series = append(d.Series, s.data())
	}
	return d
}

func (s Series) data() seriesData {
	d := seriesData{Name: s.Name, Dots: s.Dots, Dashed: s.Dashed}
	for _, p := range s.Points {
		d.X, d.Y = append(d.X, p.X), append(d.Y, nullable(p.Y))
		var low, high *float64
		if p.hasBand() {
			low, high, d.Band = nullable(p.Low), nullable(p.High), true
		}
		d.Low, d.High = append(d.Low, low), append(d.High, high)
		d.Notes = append(d.Notes, p.Note)
	}
	return d
}

func nullable(v float64) *float64 {
	if !isKnown(v) {
		return nil
	}
	return &v
}
