package pack

import (
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Commits yields the commits from a number on, in order, as decoding their frames does, but without encoding these.
// Checksums of the parts protect what is read, and the ids of content are computed from it. The bodies share memory
// with the pack and must not be changed. An error ends the sequence.
func (p *File) Commits(from uint64) iter.Seq2[*structure.Commit, error] {
	return func(yield func(*structure.Commit, error) bool) {
		n, err := p.chapterOf(from)
		if err != nil {
			yield(nil, err)
			return
		}
		known := make(bodyIDs)
		var pieces []commitPiece
		for ; n < len(p.rows); n++ {
			c, err := p.readChapter(n, false) // each is read once: a cache would keep what nobody needs again
			if err != nil {
				yield(nil, err)
				return
			}
			for _, x := range c.commits {
				if x.Number < from {
					continue
				}
				if len(pieces) > 0 && x.Rest == nil {
					yield(nil, p.corrupt(c.Offset, missingRest(pieces[0].x.Number)))
					return
				}
				if pieces = append(pieces, commitPiece{c, x, n}); x.Open {
					continue
				}
				commit, err := p.complete(pieces, known)
				if !yield(commit, err) || err != nil {
					return
				}
				pieces = pieces[:0]
			}
		}
		if len(pieces) > 0 {
			yield(nil, p.corrupt(p.foot.TableAt, missingRest(pieces[0].x.Number)))
		}
	}
}

// complete returns the commit of pieces, which it uses up.
func (p *File) complete(pieces []commitPiece, known bodyIDs) (*structure.Commit, error) {
	at, x := pieces[0], pieces[0].x
	var c *structure.Commit
	var err error
	if x.Verbatim {
		var payload []byte
		if payload, err = p.bodyIn(at.c.bodies, uint64(x.Bodies[0])); err != nil {
			return nil, err
		}
		if c, err = structure.DecodeCommit(payload); err != nil {
			return nil, p.undecodable(at, err)
		}
	} else {
		if len(pieces) > 1 {
			x = joined(pieces)
		}
		c, err = x.Complete(func(i int) (content.ID, []byte, error) {
			pieces = pieceOf(pieces, x.Bodies[i])
			body, err := p.bodyIn(pieces[0].c.bodies, uint64(x.Bodies[i]))
			if _, block := x.Records[i].(*structure.Block); !block || err != nil {
				return content.ID{}, body, err
			}
			id := content.Sum(body)
			known.add(uint64(x.Bodies[i]), id)
			return id, body, nil
		}, func(r *columns.ContentRef) (content.ID, error) {
			if r.Body < 0 {
				return r.ID, nil
			}
			if id, ok := known[uint64(r.Body)]; ok {
				return id, nil
			}
			id, err := p.contentID(r)
			if err == nil {
				known.add(uint64(r.Body), id)
			}
			return id, err
		})
	}
	if errors.Is(err, layout.ErrForm) { // no written pack has such a record
		err = p.corrupt(at.c.Offset, err.Error())
	}
	if err != nil {
		return nil, err
	}
	if len(c.Records) == 0 {
		c.Records = nil // as the decoder returns it
	}
	c.Number, c.ID = x.Number, layout.StatedBy(p.identities, x.Number)
	return c, nil
}

// undecodable returns the error for a payload that was packed unchanged and cannot be decoded.
func (p *File) undecodable(at commitPiece, err error) error {
	if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
		return fmt.Errorf("commit %d: %w", at.x.Number, err)
	}
	return p.corrupt(at.c.Offset, err.Error())
}

// bodyIDs has the ids of bodies that were read, by number, so that content that is used often, such as a form, is not
// hashed again.
type bodyIDs map[uint64]content.ID

// maxBodyIDs is the number of ids that are remembered.
const maxBodyIDs = 1 << 16

func (b bodyIDs) add(body uint64, id content.ID) {
	if len(b) >= maxBodyIDs {
		clear(b)
	}
	b[body] = id
}
