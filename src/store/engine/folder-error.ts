// An error about the data folder that its owner can fix. Its message is a sentence that is shown as it is.

export class FolderError extends Error {}
