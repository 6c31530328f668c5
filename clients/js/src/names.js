/** Writes any text as one part of the name of a branch. */
export const encodePart = (text) => encodeURIComponent(text).replaceAll("~", "%7E");
