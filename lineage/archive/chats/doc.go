// Package chats has the formats of chat services: exports of conversations, each a tree of messages.
package chats
