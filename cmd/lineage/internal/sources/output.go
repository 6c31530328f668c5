package sources

import (
	"io"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

// writeBinary is like app.WriteOutput, for bytes that a terminal cannot show.
func writeBinary(a *app.App, name string, write func(io.Writer) error) error {
	if name == app.StdoutName && a.Out.Terminal {
		return app.Usagef("this is not for a terminal: send it to a file")
	}
	return a.WriteOutput(name, write)
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
