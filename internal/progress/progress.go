// Package progress draws a bar on a terminal during a long run.
package progress

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bar returns two functions: show displays how many of all steps are done, and end removes the
// bar. Without a terminal both do nothing.
func Bar(w io.Writer, all, width int, options ...progressbar.Option) (show func(done int, what string), end func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(int, string) {}, func() {}
	}
	bar := progressbar.NewOptions(all, append([]progressbar.Option{progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(width),
		progressbar.OptionClearOnFinish()}, options...)...)
	shown := ""
	return func(done int, what string) {
		if what != shown { // each description draws the bar
			shown = what
			bar.Describe(what)
		}
		bar.Set(done)
	}, func() { bar.Finish() }
}

// Share returns a function that shows the share of a run that is over, and its phase.
func Share(w io.Writer, name string) func(share float64, phase string) {
	const all = 1000
	show, _ := Bar(w, all, 40, progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(true))
	return func(share float64, phase string) {
		show(int(all*min(1, share)), name+": "+fmt.Sprintf("%-8s", phase))
	}
}
