//! The tensors of a `model.safetensors`.

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::files::WEIGHTS;
use crate::model::LoadError;

/// Tensors by name, all of whose bounds have been checked.
pub(crate) struct Tensors<'a> {
    tensors: SafeTensors<'a>,
    prefix: &'static str,
}

impl<'a> Tensors<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|error| LoadError::malformed(WEIGHTS, error.to_string()))?;
        // A model saved for training keeps its encoder one level down.
        let nested = tensors.names().iter().any(|name| name.starts_with("bert.embeddings."));
        Ok(Self { tensors, prefix: if nested { "bert." } else { "" } })
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tensors.names().into_iter().collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.tensor(name).ok().map(|tensor| tensor.shape().to_vec())
    }

    /// The values of a tensor that must have this shape.
    pub(crate) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let name = format!("{}{name}", self.prefix);
        let tensor = self
            .tensors
            .tensor(&name)
            .map_err(|_| LoadError::malformed(WEIGHTS, format!("there is no tensor `{name}`")))?;
        if tensor.shape() != shape {
            let found = tensor.shape();
            let reason =
                format!("tensor `{name}` has the shape {found:?} where config.json asks for {shape:?}");
            return Err(LoadError::malformed(WEIGHTS, reason));
        }
        to_floats(&name, &tensor)
    }
}

fn to_floats(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, LoadError> {
    let data = tensor.data();
    match tensor.dtype() {
        Dtype::F32 => Ok(data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
        Dtype::F16 => {
            Ok(data.as_chunks().0.iter().map(|bytes| from_half(u16::from_le_bytes(*bytes))).collect())
        }
        Dtype::BF16 => {
            let wide = |bytes: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            Ok(data.as_chunks().0.iter().map(wide).collect())
        }
        // A table has one scale for all its values, which the length of one takes away.
        Dtype::I8 => Ok(data.iter().map(|byte| f32::from(byte.cast_signed())).collect()),
        other => Err(LoadError::unsupported(
            format!("tensor `{name}` holds {other:?}"),
            "convert the model to F32, F16, BF16 or I8".to_owned(),
        )),
    }
}

fn from_half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    sign * match (bits >> 10) & 0x1f {
        0 => fraction * 2f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        exponent => (1.0 + fraction) * 2f32.powi(i32::from(exponent) - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::from_half;

    #[test]
    fn half_floats_have_their_values() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(from_half(bits), value);
        }
        assert!(from_half(0x7c00).is_infinite() && from_half(0x7e00).is_nan());
    }
}
