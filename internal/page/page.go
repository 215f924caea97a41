// Package page renders what the commands measured and found as one HTML file, which
// needs no network and no other file.
package page

import (
	_ "embed" // the template
	"html/template"
	"io"
)

// Page is a report for a browser.
type Page struct {
	Title, Sub string
	Fine       string // a good verdict
	Broken     string // a bad verdict
	Tiles      []Tile
	Sections   []Section
}

// Tile is an answer at the top of the page.
type Tile struct{ Head, Big, Small string }

// Section is a part of the page. Empty parts are left out.
type Section struct {
	Title, Text string
	Charts      []template.HTML // SVG
	Beside      bool            // two charts in a row
	Table       [][]string      // the first row is the head
	Pre         string
	Notes       []string
}

//go:embed page.html
var source string

var layout = template.Must(template.New("page").Parse(source))

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return layout.Execute(w, p) }
