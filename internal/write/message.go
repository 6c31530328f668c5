package write

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/structure"
)

// StoreFunc stores the content of a usage and returns its id.
type StoreFunc func(mediaType string, kind content.OriginKind, body []byte) (content.ID, error)

// Message appends the usages of a message: the head, which has all fields but the content, and parts. A JSON
// message is split into its texts and its form; any other is a single piece. Content is stored in the order
// of the usages.
func Message(dst []structure.Usage, head structure.Usage, mediaType string, body []byte, store StoreFunc) ([]structure.Usage, error) {
	head.Piece = form.PlainPiece(head.Role)
	kind := content.OriginOfRole(head.Role)
	var err error
	var divided form.SplitMessage
	if mediaType == content.TypeJSON {
		split, ok := form.Split(body, head.Role)
		if head.Opaque = !ok; ok {
			divided = split
		}
	}
	if len(divided.Pieces) == 0 {
		if head.Content, err = store(mediaType, kind, body); err == nil {
			err = Metadata(&head, store)
		}
		return append(dst, head), err
	}
	first := &divided.Pieces[0]
	switch {
	case first.Name == "":
	case head.Piece == structure.OutputPiece && first.Kind == head.Piece && (head.Name == "" || head.Name == first.Name) && first.Name != head.Role:
		head.Name = first.Name // as of a plain result of a tool
	default:
		divided.KeepTool()
	}
	head.Piece, head.Extras, head.Type = first.Kind, divided.Extras, typeOf(first)
	if head.Content, err = store(typeOf(first), originOf(first, kind), first.Body); err != nil {
		return dst, err
	}
	if head.Form, err = store(content.TypeForm, content.OriginUnknown, divided.Form); err != nil {
		return dst, err
	}
	if err = Metadata(&head, store); err != nil {
		return dst, err
	}
	dst = append(dst, head)
	for i := range divided.Pieces[1:] {
		p := &divided.Pieces[i+1]
		part := structure.Usage{Kind: structure.PartUsage, Piece: p.Kind, Name: p.Name, Type: typeOf(p), CreatedAt: head.CreatedAt}
		if part.Content, err = store(typeOf(p), originOf(p, kind), p.Body); err != nil {
			return dst, err
		}
		dst = append(dst, part)
	}
	return dst, nil
}

// Metadata stores the metadata of a usage as content, if it is not empty, so that it can be erased. The
// usage's other content must be stored before.
func Metadata(u *structure.Usage, store StoreFunc) (err error) {
	if u.Metadata != nil && form.Says(u.Metadata) {
		u.MetadataContent, err = store(content.TypeJSON, content.OriginUnknown, u.Metadata)
		u.Metadata = nil
	}
	return err
}

// OmitStated clears the fields of usages that are equal in the first block of their content.
func OmitStated(usages []structure.Usage, blocks []*structure.Block) {
	var first map[content.ID]*structure.Block
	if len(blocks) > 8 {
		first = make(map[content.ID]*structure.Block, len(blocks))
		for _, b := range blocks {
			if first[b.ID] == nil {
				first[b.ID] = b
			}
		}
	}
	for i := range usages {
		u := &usages[i]
		b := first[u.Content]
		for k := 0; first == nil && b == nil && k < len(blocks); k++ {
			if blocks[k].ID == u.Content {
				b = blocks[k]
			}
		}
		if b == nil {
			continue
		}
		if u.Type == b.Type {
			u.Type = ""
		}
		if u.Origin != nil && *u.Origin == b.Origin {
			u.Origin = nil
		}
	}
}

func typeOf(p *form.Piece) string {
	if p.JSON {
		return content.TypeJSON
	}
	return content.TypeText
}

// originOf returns the origin of a piece of a message.
func originOf(p *form.Piece, message content.OriginKind) content.OriginKind {
	if p.Kind == structure.OutputPiece {
		return content.OriginTool
	}
	return message
}
