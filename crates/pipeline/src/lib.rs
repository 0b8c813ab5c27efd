//! Any chat model by voice: speech to text, the model, and its sentences as speech, behind the trait of live models.
