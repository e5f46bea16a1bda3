package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // format png
	_ "gonum.org/v1/plot/vg/vgsvg" // format svg
)

const (
	pictureWidth  = 9 * vg.Inch
	pictureHeight = 5 * vg.Inch
	margin        = vg.Length(10)
)

// PNG writes the chart as a PNG picture, 864 by 480 points at 96 dots an inch.
func (c Chart) PNG(w io.Writer) error { return c.picture(w, "png") }

// SVG writes the chart as an SVG picture; its text stays text.
func (c Chart) SVG(w io.Writer) error { return c.picture(w, "svg") }

func (c Chart) picture(w io.Writer, format string) error {
	c, err := c.prepared()
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = c.Title
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	p.Add(gridLines())
	if err := c.addSeries(p); err != nil {
		return err
	}
	c.addLimits(p)
	c.setAxes(p)
	c.addMarks(p)
	setFonts(p)
	canvas, err := draw.NewFormattedCanvas(pictureWidth, pictureHeight, format)
	if err != nil {
		return fmt.Errorf("draw chart %q as %s: %w", c.Title, format, err)
	}
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, margin, -2*margin, margin, -margin))
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write chart %q as %s: %w", c.Title, format, err)
	}
	return nil
}

// setFonts makes all text sans serif, as on the page.
func setFonts(p *plot.Plot) {
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label,
		&p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
}

func gridLines() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = color.Gray{235}, color.Gray{225}
	return g
}

// colours are those of chart.js.
var colours = []color.NRGBA{
	{0x0b, 0x62, 0xc4, 255}, {0xc4, 0x32, 0x0b, 255}, {0x1a, 0x7f, 0x37, 255},
	{0x82, 0x50, 0xdf, 255}, {0x9a, 0x67, 0x00, 255}, {0x11, 0x6b, 0x74, 255},
	{0xbf, 0x39, 0x89, 255}, {0x57, 0x60, 0x6a, 255},
}

func (c Chart) addSeries(p *plot.Plot) error {
	for i, s := range c.Series {
		colour := colours[i%len(colours)]
		for _, run := range s.runs() {
			if err := addRun(p, s, run, colour); err != nil {
				return fmt.Errorf("draw series %q: %w", s.Name, err)
			}
		}
		line := &plotter.Line{LineStyle: lineStyle(s, colour)}
		dots := &plotter.Scatter{GlyphStyle: dotStyle(s, colour)}
		if s.Dots {
			p.Legend.Add(s.Name, dots)
		} else {
			p.Legend.Add(s.Name, line)
		}
	}
	p.Legend.Top = true
	return nil
}

// runs are the stretches of a series between its gaps.
func (s Series) runs() [][]Point {
	var runs [][]Point
	begin := 0
	for i := 0; i <= len(s.Points); i++ {
		if i < len(s.Points) && isKnown(s.Points[i].Y) {
			continue
		}
		if i > begin {
			runs = append(runs, s.Points[begin:i])
		}
		begin = i + 1
	}
	return runs
}

// fewPoints is how many points of a line are still shown as dots too.
const fewPoints = 120

func addRun(p *plot.Plot, s Series, run []Point, colour color.NRGBA) error {
	if err := addBand(p, run, colour); err != nil {
		return err
	}
	xys := make(plotter.XYs, len(run))
	for i, pt := range run {
		xys[i].X, xys[i].Y = pt.X, pt.Y
	}
	line, dots, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	line.LineStyle, dots.GlyphStyle = lineStyle(s, colour), dotStyle(s, colour)
	if !s.Dots {
		p.Add(line)
	}
	if s.Dots || len(s.Points) <= fewPoints {
		p.Add(dots)
	}
	return nil
}

// addBand fills between the lows and the highs; a single point gets a short vertical line by
// being as wide as a hair.
func addBand(p *plot.Plot, run []Point, colour color.NRGBA) error {
	var upper, lower plotter.XYs
	for _, pt := range run {
		if pt.hasBand() {
			upper = append(upper, plotter.XY{X: pt.X, Y: pt.High})
			lower = append(lower, plotter.XY{X: pt.X, Y: pt.Low})
		}
	}
	if len(upper) == 0 {
		return nil
	}
	outline := upper
	for i := len(lower) - 1; i >= 0; i-- {
		outline = append(outline, lower[i])
	}
	area, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	faint := colour
	faint.A = 0x2e
	area.Color, area.LineStyle.Width = faint, 0
	if len(upper) == 1 {
		area.LineStyle.Width, area.LineStyle.Color = vg.Points(2), faint
	}
	p.Add(area)
	return nil
}

func lineStyle(s Series, colour color.Color) draw.LineStyle {
	style := draw.LineStyle{Color: colour, Width: vg.Points(1.6)}
	if s.Dashed {
		style.Dashes = []vg.Length{vg.Points(6), vg.Points(4)}
	}
	return style
}

func dotStyle(s Series, colour color.Color) draw.GlyphStyle {
	style := draw.GlyphStyle{Color: colour, Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
	if s.Dots {
		style.Radius = vg.Points(3)
	}
	return style
}

var limitColour = color.NRGBA{0xcf, 0x22, 0x2e, 255}

func (c Chart) addLimits(p *plot.Plot) {
	for _, l := range c.Limits {
		y := l.Y
		f := plotter.NewFunction(func(float64) float64 { return y })
		f.LineStyle = draw.LineStyle{
			Color: limitColour, Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(5), vg.Points(3)},
		}
		p.Add(f)
		p.Legend.Add(l.Name+" "+figure(c.Y.Unit, y), f)
		p.Y.Min, p.Y.Max = math.Min(p.Y.Min, y), math.Max(p.Y.Max, y)
	}
}

func (c Chart) addMarks(p *plot.Plot) {
	for _, m := range c.Marks {
		line, err := plotter.NewLine(plotter.XYs{{X: m.X, Y: p.Y.Min}, {X: m.X, Y: p.Y.Max}})
		if err != nil {
			continue // two finite points: cannot be
		}
		line.LineStyle = draw.LineStyle{
			Color: color.Gray{0x60}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(2), vg.Points(2)},
		}
		p.Add(line)
		p.Legend.Add(m.Name, line)
	}
}
