// Something about the data folder that its owner can mend, told in a sentence.

export class FolderError extends Error {}
